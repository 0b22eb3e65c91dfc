// Shows a notification when a question waits, and opens its page. It keeps no page and no question, and answers none.

const home = new URL(self.registration.scope);

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  let sent = {};
  try {
    sent = event.data?.json() ?? {};
  } catch {
    // Something else than the gateway sends: a browser wants to see a notification all the same.
  }
  const text = (value, otherwise) => (typeof value === "string" && value !== "" ? value : otherwise);
  event.waitUntil(Promise.all([
    self.registration.showNotification(text(sent.title, "A question has changed"), {
      body: text(sent.body, ""),
      // A later message about the question takes the place of the earlier one.
      tag: text(sent.id, "question"),
      data: { path: text(sent.path, "") },
      icon: new URL("assets/icon-192.png", home).href,
    }),
    count(),
  ]));
});

// The number of questions that wait, on the icon of the installed app.
async function count() {
  try {
    const reply = await fetch(new URL("state", home), { cache: "no-store", redirect: "error" });
    if (!reply.ok || !navigator.setAppBadge) return;
    const { pending } = await reply.json();
    await navigator.setAppBadge(Number(pending) || 0);
  } catch {
    // Signed out, or without a network: the number stays as it is.
  }
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(event.notification.data?.path));
});

async function show(path) {
  const wanted = new URL(path || home.pathname, home);
  // Pages of this inbox only.
  const page = wanted.origin === home.origin && wanted.pathname.startsWith(home.pathname) ? wanted.href : home.href;
  const open = await self.clients.matchAll({ type: "window" });
  const shown = open.find((client) => client.url.split(/[?#]/)[0] === page);
  return shown ? shown.focus() : self.clients.openWindow(page);
}
