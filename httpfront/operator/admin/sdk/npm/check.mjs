// Has the package cloudflare do all that it knows of waiting rooms: node check.mjs TOKEN ZONE URL...
// Each call goes to the next of the nodes at the URLs.
import assert from 'node:assert/strict'
import Cloudflare from 'cloudflare'

const [token, zone_id, ...urls] = process.argv.slice(2)
let turn = 0

// sends a request to the next node. What was written is at all nodes before the next call, or the answer says so.
async function send(url, init) {
  const at = new URL(url)
  const to = new URL(at.pathname + at.search, urls[turn++ % urls.length])
  const answer = await fetch(to, init)
  assert.equal(answer.headers.get('Ropeline-Not-Yet-At'), null, `${init.method} ${to}: all nodes run`)
  return answer
}

const { waitingRooms: rooms } = new Cloudflare({ apiToken: token, baseURL: urls[0] + '/client/v4', fetch: send, maxRetries: 0 })

const room = (name) => ({ zone_id, name, host: `${name}.${zone_id}.example`, total_active_users: 20, new_users_per_minute: 10, session_duration: 7 })

// shows checks some fields of what the package has made of an answer.
function shows(what, answer, fields) {
  for (const [name, value] of Object.entries(fields)) assert.deepEqual(answer[name], value, `${what}: ${name}`)
}

// all are the items of all pages, which the package turns by itself.
async function all(pages) {
  const items = []
  for await (const item of pages) items.push(item)
  return items
}

async function oneRoom() {
  const { id } = await rooms.create(room('tickets'))
  const changed = {
    description: 'changed', queueing_method: 'random', queueing_status_code: 429, json_response_enabled: true, queue_all: true,
    enabled_origin_commands: ['revoke'], additional_routes: [{ host: `also.${zone_id}.example`, path: '/' }], cookie_suffix: 'x',
    custom_page_html: '<p>{{waitTime}}', default_template_language: 'de-DE', turnstile_mode: 'off', turnstile_action: 'log',
  }
  shows('made', await rooms.get(id, { zone_id }), { name: 'tickets', session_duration: 7, queueing_status_code: 200, path: '/' })
  shows('replaced', await rooms.update(id, { ...room('tickets'), ...changed, cookie_attributes: { samesite: 'lax', secure: 'always' } }), changed)
  shows('replaced, read', await rooms.get(id, { zone_id }), changed)
  shows('edited', await rooms.edit(id, { ...room('tickets'), total_active_users: 21 }), { ...changed, total_active_users: 21 })
  const edited = await rooms.get(id, { zone_id })
  shows('edited, read', edited, { ...changed, total_active_users: 21 })
  shows('edited, read', edited.cookie_attributes, { samesite: 'lax', secure: 'always' })
  assert.match((await rooms.statuses.get(id, { zone_id })).status, /^(event_prequeueing|not_queueing|queueing|suspended)$/)
  assert.match((await rooms.page.preview({ zone_id, custom_html: '<p>{{waitTime}}' })).preview_url, /^http/)
  assert.equal((await rooms.delete(id, { zone_id })).id, id)
  await assert.rejects(rooms.get(id, { zone_id }), Cloudflare.NotFoundError)
}

async function pages() {
  for (const name of 'abcdef') await rooms.create(room(name))
  assert.equal((await rooms.list({ zone_id, per_page: 5 })).result.length, 5)
  assert.equal((await all(rooms.list({ zone_id, per_page: 5 }))).map((r) => r.name).sort().join(''), 'abcdef')
  const ours = (await all(rooms.list({ account_id: 'any' }))).filter((r) => r.host.endsWith(zone_id + '.example'))
  assert.equal(ours.length, 6, 'rooms of the account')
}

async function events() {
  const { id: waiting_room_id } = await rooms.create(room('events'))
  const begin = Math.trunc(Date.now() / 86_400_000 + 1) * 86_400_000
  const at = (hours) => new Date(begin + hours * 3_600_000).toISOString().replace('.000', '')
  const event = {
    zone_id, name: 'sale', prequeue_start_time: at(-1), event_start_time: at(0), event_end_time: at(1), shuffle_at_event_start: true,
    total_active_users: 5, new_users_per_minute: 4,
  }
  const { id, ...made } = await rooms.events.create(waiting_room_id, event)
  const of = { zone_id, waiting_room_id }
  shows('made', made, { prequeue_start_time: at(-1), session_duration: null, total_active_users: 5 })
  assert.equal((await all(rooms.events.list(waiting_room_id, { zone_id }))).length, 1)
  shows('details', await rooms.events.details.get(id, of), { session_duration: 7, queueing_method: 'fifo', total_active_users: 5 })
  const next = { ...event, ...of, session_duration: 3, queueing_method: 'random', total_active_users: null, new_users_per_minute: null }
  shows('replaced', await rooms.events.update(id, next), { session_duration: 3, total_active_users: null })
  shows('edited', await rooms.events.edit(id, { ...of, name: 'autumn', event_start_time: at(0), event_end_time: at(2), queueing_method: null }), { name: 'autumn' })
  shows('read', await rooms.events.get(id, of), { name: 'autumn', session_duration: 3, queueing_method: null, event_end_time: at(2) })
  assert.equal((await rooms.events.delete(id, of)).id, id)
}

async function rules() {
  const { id: waiting_room_id } = await rooms.create(room('rules'))
  const rule = (name) => ({ action: 'bypass_waiting_room', expression: `http.host eq "${name}"` })
  const hosts = (list) => list.map((r) => r.expression.split('"')[1]).join('')
  const of = { zone_id, waiting_room_id }
  assert.equal(hosts(await all(rooms.rules.update(waiting_room_id, { zone_id, rules: [rule('a'), rule('b')] }))), 'ab')
  const three = await all(rooms.rules.create(waiting_room_id, { zone_id, rules: { ...rule('c'), description: 'why' } }))
  assert.equal(hosts(three) + three[2].description, 'abcwhy')
  for (const [position, want] of [[{ index: 1 }, 'Cab'], [{ before: three[1].id }, 'aCb'], [{ after: '' }, 'abC']]) {
    assert.equal(hosts(await all(rooms.rules.edit(three[2].id, { ...of, ...rule('C'), enabled: false, position }))), want)
  }
  assert.equal(hosts(await all(rooms.rules.delete(three[0].id, of))), 'bC')
  const read = await all(rooms.rules.get(waiting_room_id, { zone_id }))
  assert.equal(hosts(read), 'bC')
  shows('read', read[1], { enabled: false, version: '2' })
}

async function settings() {
  for (const [change, bypass] of [['edit', true], ['update', false]]) {
    const is = { search_engine_crawler_bypass: bypass }
    shows(change, await rooms.settings[change]({ zone_id, ...is }), is)
    shows(change + ', read', await rooms.settings.get({ zone_id }), is)
  }
}

// refusals come to whoever asks through the package as well.
const refusals = () => assert.rejects(rooms.create({ ...room('a b'), total_active_users: 0 }), (e) =>
  e instanceof Cloudflare.BadRequestError && e.errors.length >= 2 && e.message.includes('from 1 to 2147483647'))

for (const part of [oneRoom, pages, events, rules, settings, refusals]) await part()
console.log(`${turn} calls to ${urls.length} nodes in turn`)
