package dashboard

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// scope is what a token is good for.
type scope string

const (
	looks scope = "read"
	write scope = "write"
)

// edit is the part of the admin API that the page edits with, in memory. It notes requests that are allowed.
func (s *stage) edit(ctx *fasthttp.RequestCtx) {
	token, _ := strings.CutPrefix(string(ctx.Request.Header.Peek("Authorization")), "Bearer ")
	if !s.may(token, write) {
		refuse(ctx, fasthttp.StatusForbidden, problem{Message: "this token has not the scope write"})
		return
	}
	method, path, body := string(ctx.Method()), string(ctx.Path()), map[string]any{}
	if len(ctx.PostBody()) > 0 {
		if err := json.Unmarshal(ctx.PostBody(), &body); err != nil {
			refuse(ctx, fasthttp.StatusBadRequest, problem{Message: err.Error()})
			return
		}
	}
	s.mu.Lock()
	s.edits = append(s.edits, fmt.Sprint(method, " ", path, " ", body))
	s.mu.Unlock()
	parts := strings.Split(strings.TrimPrefix(path, apiPath+"rooms/"), "/")
	var wrong []problem
	s.mesh.change(func(m *fakeMesh) {
		i := slices.IndexFunc(m.snap.Rooms, func(r Room) bool { return r.ID == parts[0] })
		switch {
		case i < 0:
			wrong = []problem{{Field: "room", Message: "there is no such room"}}
		case len(parts) == 1:
			r := &m.snap.Rooms[i]
			wrong = patchRoom(r, body)
			d := m.details[r.ID]
			d.Settings = Settings{r.TotalActiveUsers, r.NewUsersPerMinute}
			m.details[r.ID] = d
		default:
			wrong = m.patchEventLocked(parts[0], strings.Join(parts[2:], ""), method, body)
		}
	})
	if len(wrong) > 0 {
		refuse(ctx, fasthttp.StatusUnprocessableEntity, wrong...)
		return
	}
	answer(ctx, body)
}

// merge sets what a body has of something.
func merge(body map[string]any, into any) []problem {
	b, err := json.Marshal(body)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return []problem{{Message: err.Error()}}
	}
	return nil
}

func patchRoom(r *Room, body map[string]any) (wrong []problem) {
	for _, field := range []string{"total_active_users", "new_users_per_minute"} {
		v, there := body[field]
		if n, _ := v.(float64); there && (n < 1 || n > math.MaxInt32) {
			wrong = append(wrong, problem{field, fmt.Sprint(v), "1 to 2147483647", fmt.Sprintf("%s is %v; allowed is 1 to 2,147,483,647", field, v)})
		}
	}
	if len(wrong) == 0 {
		wrong = merge(body, r)
	}
	return wrong
}

func (f *fakeMesh) patchEventLocked(room, id, method string, body map[string]any) []problem {
	d := f.details[room]
	d.Events = slices.Clone(d.Events)
	i := slices.IndexFunc(d.Events, func(ev Event) bool { return ev.ID == id })
	if i < 0 {
		i = len(d.Events)
		d.Events = append(d.Events, Event{ID: fmt.Sprintf("event-%d", i+1)})
	}
	next := &d.Events[i]
	if wrong := merge(body, next); wrong != nil {
		return wrong
	}
	switch {
	case method == "DELETE":
		d.Events = slices.Delete(d.Events, i, i+1)
	case !next.End.After(next.Start):
		return []problem{{Field: "event_end_time", Message: "event_end_time is not after event_start_time"}}
	}
	f.details[room] = d
	return nil
}
