(function () {
// The server says when to ask (refreshIntervalSeconds), and in which words. Here
// is only what follows from that. Times are milliseconds.
var d = document, room = d.getElementById('room'), say = room.dataset, bar = d.querySelector('progress'),
clock = d.querySelector('time'), timer, last, due, start, lost = 0, turn

if (!window.fetch) return
// This script asks instead of the Refresh field, which is for browsers without.
addEventListener('load', function () { setTimeout(function () { stop() }) })

function all(sel, f) { [].forEach.call(d.querySelectorAll(sel), f) }
function state(t) { d.getElementById('state').textContent = t }
function tell(t) {
var e = d.getElementById('say')
if (e.textContent !== t) e.textContent = t
}

// In a hidden tab nobody sees an answer, but the place has to be kept: it asks after
// two fifths of the time for which it is. Browsers let timers of hidden tabs wait
// for up to a minute, and then there still is time to try again.
function plan() {
clearTimeout(timer)
var at = d.hidden && !say.once ? Math.max(due, last + say.kept * 400) : due
if (at < Infinity) timer = setTimeout(ask, Math.max(0, at - Date.now()))
}
function after(seconds) {
last = Date.now()
due = seconds > 0 ? last + seconds * 1000 : Infinity
plan()
}

function enter() {
due = Infinity
turn = 1
d.title = say.turn
state(say.turn)
tell(say.turn)
go()
}
// Who looks at another tab is called by the title, and comes in on returning.
function go() {
if (d.hidden) return
if (say.again === 'true') location.replace(location.pathname + location.search)
else location.reload()
}

function trouble() {
state(say.lost)
tell(say.lost)
room.className = 'lost'
after(Math.min(60, 5 * Math.pow(2, lost++)) * (1 + Math.random()))
}

function ask() {
if (say.json !== 'true') return go()
due = Infinity
fetch(location.href, {headers: {Accept: 'application/json'}, cache: 'no-store', redirect: 'manual', signal: window.AbortSignal && AbortSignal.timeout && AbortSignal.timeout(3e4)}).then(function (r) {
if (r.headers.get('Ropeline-State') === 'waiting') return r.json().then(show)
if (r.status > 499 || r.status === 429) throw r
enter()
}).catch(trouble)
}

function show(w) {
w = w.cfWaitingRoom
all('[data-v]', function (e) {
var t = w[e.dataset.v]
if (e.textContent !== t) e.textContent = t
;(e.closest('dl>div,section') || e).hidden = !t
})
d.title = w.tab
if (w.progressKnown) bar.value = w.progress
else bar.removeAttribute('value')
d.getElementById('moves').hidden = !w.refreshIntervalSeconds
say.kept = w.placeKeptSeconds
room.className = ''
lost = 0
updated(w.lastUpdated)
tell(w.title + '. ' + (w.waitTimeText || w.timeUntilEventStartText))
count(w.secondsUntilEventStart)
after(w.refreshIntervalSeconds)
}
function updated(t) {
state(say.updated)
clock.dateTime = t
clock.textContent = new Date(t).toLocaleTimeString(d.documentElement.lang)
}

// The countdown runs by itself between two answers. At its end nobody asks: the
// next answer tells who is in, and so not all ask at the same moment.
function count(seconds) {
var was = start
start = seconds > 0 ? Date.now() + seconds * 1000 : 0
if (start && !was) tick()
}
function tick() {
if (!start) return
var s = Math.max(0, Math.ceil((start - Date.now()) / 1000)), t = {hours: s / 3600 | 0, minutes: s / 60 % 60 | 0, seconds: s % 60}
if (s < 86400) d.querySelector('[role=timer]').textContent = window.Intl && Intl.DurationFormat
? new Intl.DurationFormat(d.documentElement.lang, {style: 'digital'}).format(t)
: new Date(s * 1000).toISOString().slice(11, 19)
setTimeout(tick, 1000 - Date.now() % 1000)
}

d.addEventListener('visibilitychange', function () { turn ? go() : plan() })
addEventListener('online', function () { if (lost) ask() })
updated(clock.dateTime)
count(+say.start)
after(+say.ask)
})()
