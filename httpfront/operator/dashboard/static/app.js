// What all views share: the mesh as it is, and when to draw.

import {follow} from './api.js'
import {Model, meshKeys} from './model.js'

export const mesh = new Model(meshKeys)

// link is how the page is connected: connecting, live, lost or revoked.
export const link = {state: 'connecting', heard: 0, why: ''}

const drawers = new Set() // called when something changed, at most once a frame
let asked = 0

// onDraw has f called before the next frame after every change. It returns what takes it
// back.
export function onDraw(f) {
  drawers.add(f)
  return () => drawers.delete(f)
}

// draw asks for a frame.
export function draw() {
  asked ||= requestAnimationFrame(() => {
    asked = 0
    for (const f of [...drawers]) f()
  })
}

let stream = null

// disconnect follows it no more.
export function disconnect() {
  stream?.abort()
}

// connect follows the mesh from now on. onEvent is called with every event, after it was
// taken in.
export function connect(onEvent) {
  stream?.abort()
  const mine = stream = new AbortController()
  link.state = 'connecting'
  follow('watch', mine.signal, (event, data) => {
    if (mine.signal.aborted) return
    if (event === 'snapshot') mesh.snapshot(data)
    else if (event === 'delta') mesh.delta(data)
    link.state = {lost: 'lost', revoked: 'revoked', gone: 'lost'}[event] ?? 'live'
    link.why = event === 'lost' ? data.message : ''
    if (event !== 'lost') link.heard = Date.now()
    onEvent(event)
    draw()
  })
}
