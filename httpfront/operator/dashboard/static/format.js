// How figures are written. Everything is in English, with the time of the one who looks.

const whole = new Intl.NumberFormat('en')
const short = new Intl.NumberFormat('en', {notation: 'compact', maximumFractionDigits: 1})
const clockTime = new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit', second: '2-digit'})
const minuteTime = new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit'})
const dayTime = new Intl.DateTimeFormat('en-GB', {
  weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', timeZoneName: 'short',
})

export const count = n => n == null ? '–' : whole.format(n)
export const compact = n => n == null ? '–' : short.format(n)
export const plural = (n, one, many = one + 's') => `${count(n)} ${n === 1 ? one : many}`
export const clock = t => clockTime.format(new Date(t))
export const minute = t => minuteTime.format(new Date(t))
export const day = t => dayTime.format(new Date(t))

// span writes a number of seconds in at most two units.
export function span(seconds) {
  if (seconds == null) return '–'
  seconds = Math.round(seconds)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`
  return `${Math.floor(hours / 24)} d ${hours % 24} h`
}

// exact writes a whole number of seconds in the largest unit of which it is a multiple.
export function exact(seconds) {
  const [size, unit] = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']].find(([size]) => seconds % size === 0)
  return `${count(seconds / size)} ${unit}`
}

// rtt writes nanoseconds.
export function rtt(ns) {
  if (ns == null) return '–'
  const ms = ns / 1e6
  return `${ms < 1 ? ms.toFixed(2) : ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

// name writes the name of a thing, or of a node that is known by its id alone.
export const name = (thing, id) => thing?.name || (id ?? '').slice(0, 8) || '–'

// route writes where a room stands.
export const route = r => (r.host || '*') + r.path

// local writes a moment as input[type=datetime-local] has it, and moment reads it. An
// empty one is null.
export function local(t) {
  if (!t) return ''
  const d = new Date(t)
  return new Date(d - d.getTimezoneOffset() * 60000).toISOString().slice(0, 16)
}
export const moment = value => value ? new Date(value).toISOString() : null
