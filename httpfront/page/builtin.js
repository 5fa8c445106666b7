// The server says when to ask and in which words; here is only what follows from
// that. A browser that does not understand this is served by the Refresh field.
// Times are in milliseconds.
(() => {
	const d = document, one = s => d.querySelector(s), put = (e, t) => { if (e.textContent !== t) e.textContent = t }
	const room = one('main'), data = room.dataset, clock = one('time')
	let timer, ticker, start, turn, lost = 0, offset = 0, due, at, alarm

	// A clock that is set back does not stop this, and what performance.now() may leave out, a sleep of the machine, is in it.
	const now = () => (offset = Math.max(offset, Date.now() - performance.now())) + performance.now()
	let last = now()

	// Asking takes the place of the Refresh field, whose reload this stops.
	addEventListener('load', () => setTimeout(() => stop()))

	// Browsers may hold timers of hidden tabs for a minute. Who is next is not to be
	// overtaken for that, so there a worker wakes the page, whose timers run on.
	try {
		alarm = new Worker(URL.createObjectURL(new Blob(['onmessage=e=>setTimeout(postMessage,e.data,0)'])))
		alarm.onmessage = () => now() >= at ? ask() : plan() // timers take whole milliseconds, and clocks may be coarse
	} catch {}

	// In a hidden tab nobody sees an answer, but the place has to be kept, and the turn
	// met: the server says how long the page may look away for that.
	function plan() {
		clearTimeout(timer)
		at = d.hidden ? Math.max(due, last + data.away * 1000) : due
		if (at === Infinity) return
		const wait = Math.max(0, at - now())
		timer = setTimeout(ask, wait)
		if (d.hidden) alarm?.postMessage(wait)
	}
	function after(seconds) {
		due = seconds > 0 ? now() + seconds * 1000 : Infinity
		plan()
	}

	// What was to change something is not sent again. The whole address, as a path that begins
	// with "//" would be the name of another host.
	function load() {
		turn = 0 // once: a slow site is not asked again when the page is looked at again
		if (data.again === 'true') location.replace(location.href.split('#')[0])
		else location.reload()
	}
	// A node answers this question itself also when it is the visitor's turn: the site may be slow, ask for a password, or
	// have no answer for a script, and so the browser alone asks it. An address with a password in it cannot be fetched.
	function ask() {
		if (data.json !== 'true') return load()
		at = due = Infinity
		clearTimeout(timer)
		fetch(location.origin + location.pathname + location.search, {headers: {Accept: 'application/vnd.ropeline+json,application/json'}, cache: 'no-store', redirect: 'manual', signal: AbortSignal.timeout?.(3e4)})
			.then(r => {
			const state = r.headers.get('Ropeline-State')
			// A room may have been told meanwhile to answer with pages only.
			if (state === 'waiting' || state === 'crowded') return /json/.test(r.headers.get('Content-Type')) ? r.json().then(show) : load()
			// Failures of ours pass. A balancer's may pass, too, but is shown in the end.
			if (state !== 'admitted' && (r.status > 499 || r.status === 429) && (state || lost < 3)) throw r
			// Who is looking at another tab is called by the title, and goes in on coming back.
			turn = 1
			lost = 0
			d.title = data.turn
			put(one('h1'), data.turn)
			tell(data.turn)
			if (!d.hidden) load()
		}).catch(() => {
			tell(data.lost, 'lost')
			after(Math.min(60, 5 * 2 ** lost++) * (1 + Math.random()))
		})
	}

	function show({cfWaitingRoom: w}) {
		d.querySelectorAll('[data-v]').forEach(e => {
			put(e, w[e.dataset.v])
			;(e.closest('dl>div,section') || e).hidden = !w[e.dataset.v]
		})
		d.title = w.tab
		const bar = one('progress')
		if (w.progressKnown) bar.value = w.progress
		else bar.removeAttribute('value')
		one('#moves').hidden = !w.refreshIntervalSeconds
		data.away = w.hiddenRefreshIntervalSeconds
		clock.dateTime = w.lastUpdated
		lost = 0
		last = now()
		tell(w.title + '. ' + (w.waitTimeText || w.timeUntilEventStartText))
		count(w.secondsUntilEventStart)
		after(w.refreshIntervalSeconds)
	}
	// Screen readers say what is new in words, and not every place gained. All others
	// see it only if there is trouble.
	function tell(words, trouble = '') {
		put(one('#say'), words)
		room.className = trouble
		put(clock, new Date(clock.dateTime).toLocaleTimeString(d.documentElement.lang))
	}

	// The countdown goes on between answers. At its end nobody asks: so not all ask at
	// once, and the next answer tells who is in.
	function count(seconds) {
		start = seconds && now() + seconds * 1000
		tick()
	}
	function tick() {
		clearTimeout(ticker)
		if (!start) return
		const s = Math.max(0, Math.ceil((start - now()) / 1000))
		if (s < 86400) put(one('[role=timer]'), self.Intl?.DurationFormat
			? new Intl.DurationFormat(d.documentElement.lang, {style: 'digital'}).format({hours: s / 3600 | 0, minutes: s / 60 % 60 | 0, seconds: s % 60})
			: new Date(s * 1000).toISOString().slice(11, 19))
		ticker = setTimeout(tick, 1000 - now() % 1000)
	}

	d.addEventListener('visibilitychange', () => turn ? d.hidden || load() : plan())
	addEventListener('online', () => { if (lost) ask() })
	tell('')
	count(+data.start)
	after(+data.ask)
})()
