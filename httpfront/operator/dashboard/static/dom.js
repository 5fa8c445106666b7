// What the views build their elements with. Text only ever gets into the page as text.

const svgSpace = 'http://www.w3.org/2000/svg'

// h returns an element. Of its properties, class, text and on (an object of listeners)
// have a meaning of their own; the others are attributes, left out where they are null
// or false. Children that are null are left out.
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children)
}

// s returns an element of SVG.
export function s(tag, props, ...children) {
  return fill(document.createElementNS(svgSpace, tag), props, children)
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name === 'on') for (const [event, f] of Object.entries(value)) element.addEventListener(event, f)
    else if (name === 'text') element.textContent = value
    else if (value === true) element.setAttribute(name, '')
    else if (value != null && value !== false) element.setAttribute(name, value)
  }
  element.append(...children.flat().filter(child => child != null && child !== false))
  return element
}

// text sets the text of an element if it is another one: writing the same would have the
// browser lay it out again.
export function text(element, value) {
  const node = element.firstChild
  if (node === null) element.append(String(value))
  else if (node.data !== String(value)) node.data = value
}

// attr sets an attribute if it is another one, and takes it away for null and false.
export function attr(element, name, value) {
  if (value == null || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name)
  } else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value)
}

// show hides an element, or shows it.
export function show(element, shown) {
  if (element.hidden === shown) element.hidden = !shown
}

// style sets a property if it is another one.
export function style(element, name, value) {
  if (element.style.getPropertyValue(name) !== String(value)) element.style.setProperty(name, value)
}

// order has parent show exactly these children in that order, and moves as few as it can
// without looking ahead.
export function order(parent, children) {
  let at = parent.firstChild
  for (const child of children) {
    if (child === at) at = at.nextSibling
    else parent.insertBefore(child, at)
  }
  while (at) {
    const next = at.nextSibling
    at.remove()
    at = next
  }
}

// Shapes for states: none is told by its colour alone.
const shapes = {
  ok: 'M8 1.500a6.500 6.500 0 1 0 0 13a6.500 6.500 0 1 0 0-13zM7 11.200L3.900 8.100l1.200-1.200L7 8.800l3.900-3.900l1.200 1.200z',
  bad: 'M5 1h6l4 4v6l-4 4H5l-4-4V5zM7.100 4v5.200h1.800V4zM7.100 10.400v1.800h1.800v-1.800z',
  warn: 'M8 1l7.500 13.500h-15zM7.200 6v4.200h1.600V6zM7.200 11.300v1.700h1.600v-1.700z',
  note: 'M8 1.500a6.500 6.500 0 1 0 0 13a6.500 6.500 0 1 0 0-13zM7.100 7h1.800v5H7.100zM7.100 4.200h1.800V6H7.100z',
  open: 'M8 3a5 5 0 1 0 0 10a5 5 0 1 0 0-10z',
  queueing: 'M1 4h3v8H1zM6 4h3v8H6zM11 4h4v8h-4z',
  hold: 'M2 2h12v12H2zM5.500 7.100h5v1.800h-5z',
  pause: 'M3.500 2.500h3v11h-3zM9.500 2.500h3v11h-3z',
  clock: 'M8 1.500a6.500 6.500 0 1 0 0 13a6.500 6.500 0 1 0 0-13zM7.200 4h1.600v3.700l2.600 2.600l-1.100 1.100l-3.100-3.100z',
  cross: 'M3.200 1.800L8 6.600l4.800-4.800l1.400 1.400L9.400 8l4.800 4.800l-1.400 1.400L8 9.400l-4.800 4.800l-1.400-1.400L6.600 8L1.800 3.200z',
  ring: 'M8 2.500a5.500 5.500 0 1 0 0 11a5.500 5.500 0 1 0 0-11zM8 4.500a3.500 3.500 0 1 1 0 7a3.500 3.500 0 1 1 0-7z',
  half: 'M8 2.500a5.500 5.500 0 1 0 0 11a5.500 5.500 0 1 0 0-11zM8 4a4 4 0 0 1 0 8z',
}

// icon returns the picture of a state, for the eye alone.
export function icon(shape) {
  return s('svg', {class: 'icon', viewBox: '0 0 16 16', 'aria-hidden': 'true'},
    s('path', {d: shapes[shape], 'fill-rule': 'evenodd'}))
}

// setIcon has an icon show another state.
export function setIcon(element, shape) {
  attr(element.firstChild, 'd', shapes[shape])
}

// badge returns the sign for a state: a picture and a word, in the colour of its level.
export function badge(state) {
  const element = h('span', {class: 'badge'}, icon(state.shape), h('span'))
  setBadge(element, state)
  return element
}

export function setBadge(element, state) {
  attr(element, 'data-level', state.level)
  setIcon(element.firstChild, state.shape)
  text(element.lastChild, state.label)
}

// say tells those who hear the page, once it is silent.
export function say(message) {
  text(document.getElementById('say'), message)
}
