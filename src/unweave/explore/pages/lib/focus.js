// Where the focus is: the link that skips to the content, the heading of a new view, and one tab stop for many elements.

// Make the link `.skip` put the focus on an element. It does not follow its address, which holds the state of the page.
export function skipTo(element) {
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    element.focus();
  });
}

// Put the focus on the heading of a view that has replaced another one, so that keys continue from there.
export function focusHeading(element) {
  const heading = element.querySelector("h1") ?? element;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

// Where a key leads in a grid of that many rows and columns; null for other keys, and beyond the edges.
export function gridStep({ key, ctrlKey }, [row, column], [rows, columns]) {
  const [last, end] = [rows - 1, columns - 1];
  const places = {
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    Home: [ctrlKey ? 0 : row, 0],
    End: [ctrlKey ? last : row, end],
  };
  const [r, c] = places[key] ?? [-1, -1];
  return r >= 0 && r <= last && c >= 0 && c <= end ? [r, c] : null;
}

// Make a grid of elements, a list of rows, one tab stop: arrows, Home and End move the focus in it.
export function oneTabStop(container, grid) {
  const size = [grid.length, grid[0]?.length ?? 0];
  let [row, column] = [0, 0];
  const stopAt = (r, c) => {
    grid[row][column].tabIndex = -1;
    [row, column] = [r, c];
    grid[row][column].tabIndex = 0;
  };
  grid.forEach((elements, r) => {
    elements.forEach((element, c) => {
      element.tabIndex = r || c ? -1 : 0;
      element.addEventListener("focus", () => stopAt(r, c));
    });
  });
  container.addEventListener("keydown", (event) => {
    const next = gridStep(event, [row, column], size);
    if (!next || !grid[row][column].matches(":focus")) return;
    event.preventDefault();
    grid[next[0]][next[1]].focus();
  });
}

// Keys for a grid that is drawn: `start` says which cell is first, `size` how many there are. `moved` is called with the
// cell, or null when the focus is lost, and `chosen` after Enter. Returns a function that gives the cell.
export function drawnGrid(canvas, { start, size, moved, chosen }) {
  let cell = null;
  const move = (next) => {
    cell = next;
    moved(cell);
  };
  canvas.tabIndex = 0;
  canvas.addEventListener("focus", () => move(start()));
  canvas.addEventListener("blur", () => move(null));
  canvas.addEventListener("keydown", (event) => {
    const next = cell && gridStep(event, cell, size());
    if (next) move(next);
    else if (cell && (event.key === "Enter" || event.key === " ")) chosen(cell);
    else return;
    event.preventDefault();
  });
  return () => (canvas.matches(":focus-visible") ? cell : null);
}
