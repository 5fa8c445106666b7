package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ropeline/ropeline/node/room"
)

// What a Turnstile may say.
var (
	turnstileModes   = []string{"", "off", "invisible", "visible_non_interactive", "visible_managed"}
	turnstileActions = []string{"", "log", "infinite_queue"}
)

// Check reports why a room cannot become what r says, beside the others of the catalog;
// each part that is about a setting is a *room.FieldError. check says what else is to hold
// of its settings, as the front sees it; nil: nothing.
func (c *Catalog) Check(r *Room, check func(*room.Settings) error) error {
	var errs []error
	fail := func(field, value, allowed string) {
		errs = append(errs, &room.FieldError{Field: field, Value: value, Allowed: allowed})
	}
	if !IsZoneName(r.Zone) {
		fail("zone", r.Zone, fmt.Sprintf("1 to %d letters, digits, '-', '_' or '.'", MaxZone))
	}
	r.checkTexts(fail)
	s := r.Whole()
	errs = append(errs, s.Validate())
	if check != nil {
		errs = append(errs, check(&s))
	}
	others := 0
	for _, o := range c.order {
		if o.Settings.ID == s.ID {
			continue
		}
		others++
		if o.Settings.Name == s.Name && o.Zone == r.Zone {
			fail("name", s.Name, "a name that no other room of the zone has")
		}
		if err := room.Apart(&o.Settings, &s); err != nil {
			errs = append(errs, err)
		}
	}
	if others >= MaxRooms {
		errs = append(errs, fmt.Errorf("there are %d rooms, which is as many as there may be; delete one first", others))
	}
	return errors.Join(errs...)
}

// checkTexts looks at what only operators see, and at sizes.
func (r *Room) checkTexts(fail func(field, value, allowed string)) {
	describe := func(prefix, s string) {
		if n := len([]rune(s)); n > maxDescription {
			fail(prefix+"description", strconv.Itoa(n)+" characters", fmt.Sprintf("at most %d characters", maxDescription))
		}
	}
	page := func(prefix, s string) {
		if len(s) > MaxPage {
			fail(prefix+"custom-page-html", strconv.Itoa(len(s))+" bytes", fmt.Sprintf("at most %d bytes", MaxPage))
		}
	}
	turnstile := func(prefix string, t Turnstile) {
		oneOf(fail, prefix+"turnstile-mode", t.Mode, turnstileModes)
		oneOf(fail, prefix+"turnstile-action", t.Action, turnstileActions)
	}
	describe("", r.Description)
	page("", r.Settings.Front.CustomPage)
	turnstile("", r.Turnstile)
	names := map[string]bool{}
	for i := range r.Events {
		e, prefix := &r.Events[i], fmt.Sprintf("events[%d].", i)
		describe(prefix, e.Description)
		turnstile(prefix, e.Turnstile)
		if e.CustomPage != nil {
			page(prefix, *e.CustomPage)
		}
		if names[e.Name] {
			fail(prefix+"name", e.Name, "a name that no other event of the room has")
		}
		names[e.Name] = true
	}
}

func oneOf(fail func(field, value, allowed string), field, value string, allowed []string) {
	if !slices.Contains(allowed, value) {
		fail(field, value, "one of "+strings.Join(allowed[1:], ", ")) // the first is "", for nothing said
	}
}
