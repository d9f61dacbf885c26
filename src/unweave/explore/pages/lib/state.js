// The state of the page is in its address, after the #, so that an address can be shared.

export function readState() {
  return new URLSearchParams(location.hash.slice(1));
}

export function writeState(params) {
  // The commas of lists stay readable; the address is replaced, so that "back" leaves the page at once.
  history.replaceState(null, "", `#${params.toString().replaceAll("%2C", ",")}`);
}

export function readNumbers(params, name, length) {
  const numbers = (params.get(name) ?? "").split(",").map(Number);
  const whole = params.get(name) && numbers.length === length && numbers.every(Number.isFinite);
  return whole ? numbers : null;
}
