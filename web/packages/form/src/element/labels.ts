/** Words of the element. */
export interface Labels {}
