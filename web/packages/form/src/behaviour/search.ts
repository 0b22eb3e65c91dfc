/** Letters as a search compares them: without case and accents. */
export const fold = (text: string) => text.trim().toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");

/**
 * A list of options with a box to search in: Down enters the list, Escape clears the box first, Enter picks the only match.
 *
 * `tell` is told how many match (null where nothing is searched for).
 */
export function searchable(find: HTMLInputElement, options: readonly HTMLElement[], tell: (found: number | null) => void): void {
  const texts = options.map((option) => fold(option.textContent));
  const shown = () => options.filter((option) => !option.hidden);
  const input = (option: HTMLElement | undefined) => option?.querySelector("input");
  const filter = () => {
    const wanted = fold(find.value);
    options.forEach((option, i) => (option.hidden = !texts[i]!.includes(wanted)));
    tell(wanted ? shown().length : null);
  };
  find.addEventListener("input", filter);
  find.addEventListener("keydown", (event) => {
    const { key } = event;
    if (key === "Escape" && find.value) {
      find.value = "";
      filter();
    } else if (key === "ArrowDown") input(shown()[0])?.focus();
    else if (key === "Enter" && !event.ctrlKey && !event.metaKey) {
      if (shown().length === 1) input(shown()[0])?.click();
    } else return;
    event.preventDefault();
  });
}
