// Elements of the study page: attributes by name; a function listens to the event of that name.

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (typeof value === "boolean") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
