package dashboard

import (
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/node/settings"
)

const (
	maxSpan   = 31 * 24 * time.Hour
	maxPoints = 2000 // in one answer
)

// history answers how a room was.
func (h *Handler) history(ctx *fasthttp.RequestCtx, room string) {
	from, to, step, wrong := historyArgs(ctx.QueryArgs())
	if len(wrong) > 0 {
		refuse(ctx, fasthttp.StatusBadRequest, wrong...)
		return
	}
	series, ok := h.cfg.Source.History(room, from, to, step)
	if !ok {
		noRoom(ctx, room)
		return
	}
	answer(ctx, series)
}

func historyArgs(args *fasthttp.Args) (from, to time.Time, step time.Duration, wrong []problem) {
	moment := func(name string) time.Time {
		text := string(args.Peek(name))
		t, err := settings.ParseTime(text)
		if err != nil {
			wrong = append(wrong, wrongArg(name, text, "a time in RFC 3339, such as 2026-07-01T18:00:00Z"))
		}
		return t
	}
	from, to = moment("from"), moment("to")
	text := string(args.Peek("step"))
	seconds, err := strconv.Atoi(text)
	if most := int(maxSpan / time.Second); err != nil || seconds < 1 || seconds > most {
		wrong = append(wrong, wrongArg("step", text, fmt.Sprintf("whole seconds from 1 to %d", most)))
	}
	if len(wrong) > 0 {
		return from, to, 0, wrong
	}
	step = time.Duration(seconds) * time.Second
	if span := to.Sub(from); span <= 0 || span > maxSpan {
		wrong = append(wrong, wrongArg("to", string(args.Peek("to")), fmt.Sprintf("a time after from, by at most %v", maxSpan)))
	} else if span/step > maxPoints {
		wrong = append(wrong, wrongArg("step", text, fmt.Sprintf("%d seconds or more for this span: at most %d steps", (span+maxPoints*time.Second-1)/(maxPoints*time.Second), maxPoints)))
	}
	return from, to, step, wrong
}

func wrongArg(field, value, allowed string) problem {
	return problem{field, value, allowed, fmt.Sprintf("%s is %q; allowed is %s", field, value, allowed)}
}
