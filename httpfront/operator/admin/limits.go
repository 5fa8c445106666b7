package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// Rate limits are of the whole mesh, and not in the dialect.

func limitRoutes() []Route {
	const tag, all, one = "rate limits", ownPath + "rate_limits", ownPath + "rate_limits/{limit}"
	return []Route{
		{Method: http.MethodGet, Path: all, Scope: Read, ID: "listRateLimits", Tag: tag, Summary: "Lists rate limits, in the order in which they are asked.", Query: pageQuery, Answer: Ref("RateLimit"), List: true, Handle: listLimits},
		{Method: http.MethodPost, Path: all, Scope: Write, ID: "createRateLimit", Tag: tag, Summary: "Adds a rate limit, at the end if it has no position.", Body: Ref("RateLimitNew"), Answer: Ref("RateLimit"), Handle: createLimit},
		{Method: http.MethodPut, Path: all, Scope: Write, ID: "replaceRateLimits", Tag: tag, Summary: "Replaces all rate limits. Those that are given with their id, or without one by their name, keep it.", Body: listOf(Ref("RateLimitListed")), Answer: Ref("RateLimit"), List: true, Handle: replaceLimits},
		{Method: http.MethodGet, Path: one, Scope: Read, ID: "getRateLimit", Tag: tag, Summary: "Shows a rate limit.", Answer: Ref("RateLimit"), Handle: getLimit},
		{Method: http.MethodPut, Path: one, Scope: Write, ID: "replaceRateLimit", Tag: tag, Summary: "Replaces a rate limit. What is left out gets its default.", Body: Ref("RateLimitNew"), Answer: Ref("RateLimit"), Handle: changeLimit(replace)},
		{Method: http.MethodPatch, Path: one, Scope: Write, ID: "changeRateLimit", Tag: tag, Summary: "Changes what is named of a rate limit, or moves it.", Body: Ref("RateLimitChange"), Answer: Ref("RateLimit"), Handle: changeLimit(change)},
		{Method: http.MethodDelete, Path: one, Scope: Write, ID: "deleteRateLimit", Tag: tag, Summary: "Deletes a rate limit.", Answer: Ref("Deleted"), Handle: deleteLimit},
	}
}

// limitAt returns the place of the rate limit that a request is about, by its id or name.
func (c *Call) limitAt(all []catalog.RateLimit) (int, error) {
	given := c.params["limit"]
	at := limitList.places(all, given)
	switch len(at) {
	case 0:
		return 0, Refuse(http.StatusNotFound, CodeNoLimit, "there is no rate limit %q", shorten(given))
	case 1:
		return at[0], nil
	}
	ids := make([]string, len(at))
	for i := range at {
		ids[i] = limitList.id(&all[at[i]])
	}
	return 0, Refuse(http.StatusConflict, CodeSeveral, "several rate limits are called %q; ask for one of them by its id: %s", given, strings.Join(ids, ", "))
}

func listLimits(_ context.Context, c *Call) (Answer, error) {
	return paged(c, c.shownLimits())
}

func (c *Call) shownLimits() []members {
	return showAll(c.api.mesh.Catalog().RateLimits(), rateLimitFields, c.now())
}

func getLimit(_ context.Context, c *Call) (Answer, error) {
	all := c.api.mesh.Catalog().RateLimits()
	i, err := c.limitAt(all)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Result: show(&all[i], rateLimitFields, c.now())}, nil
}

func countLimitVersion(was, is *catalog.RateLimit) {
	before := was.Rule
	if slices.Equal(before.Characteristics, is.Characteristics) {
		before.Characteristics = is.Characteristics // none may be nil or empty
	}
	if !reflect.DeepEqual(is.Rule, before) {
		is.Version++
	}
}

// wholeLimit returns an error where the content of a rate limit is not known: it would be
// lost.
func wholeLimit(l *catalog.RateLimit) error {
	if !l.Incomplete {
		return nil
	}
	return Refuse(http.StatusConflict, CodeFailed, "the content of the rate limit %q has not arrived at this node yet", l.Name)
}

func createLimit(ctx context.Context, c *Call) (Answer, error) {
	return c.editLimit(ctx, create, func(r *reader, is *[]catalog.RateLimit) (int, error) { return limitList.create(c, r, is), nil })
}

func changeLimit(m mode) Handler {
	return func(ctx context.Context, c *Call) (Answer, error) {
		return c.editLimit(ctx, m, func(r *reader, is *[]catalog.RateLimit) (int, error) {
			i, err := c.limitAt(*is)
			if err == nil {
				err = wholeLimit(&(*is)[i])
			}
			if err != nil {
				return 0, err
			}
			return limitList.change(c, r, is, i), nil
		})
	}
}

// replaceLimits keeps those whose ids are given, and without an id those whose names are;
// all others are new.
func replaceLimits(ctx context.Context, c *Call) (Answer, error) {
	_, err := c.editLimits(ctx, replace, func(r *reader, is *[]catalog.RateLimit) (int, error) {
		for i := range *is {
			if err := wholeLimit(&(*is)[i]); err != nil {
				return 0, err
			}
		}
		return allOfThem, limitList.replace(c, r, is)
	})
	return Answer{Result: c.shownLimits(), List: true}, err
}

func deleteLimit(ctx context.Context, c *Call) (Answer, error) {
	var id limit.ID
	err := c.write(ctx, func(cat *catalog.Catalog) ([]catalog.Write, error) {
		was := cat.RateLimits()
		i, err := c.limitAt(was)
		if err != nil {
			return nil, err
		}
		id = was[i].ID
		return cat.LimitWrites(was, slices.Delete(cat.RateLimits(), i, i+1)), nil
	})
	return deleted(id.String()), err
}

// allOfThem is in place of the place of one.
const allOfThem = -1

var limitList = &ordered[catalog.RateLimit]{
	name: "rate_limits", of: "rate limits", by: "the id or the name", fields: rateLimitFields, placed: withPlace(rateLimitFields, "the id or the name"),
	id:     func(l *catalog.RateLimit) string { return l.ID.String() },
	called: func(l *catalog.RateLimit) string { return l.Name },
	alike:  "name", like: func(l *catalog.RateLimit) string { return l.Name },
	fresh: func(c *Call) catalog.RateLimit {
		l := newLimit()
		rand.Read(l.ID[:])
		l.Version, l.Created = 1, c.now()
		return l
	},
	again: func(was *catalog.RateLimit) catalog.RateLimit {
		l := newLimit()
		l.ID, l.Version, l.Created = was.ID, was.Version, was.Created
		return l
	},
	changed: countLimitVersion,
}

// editLimit is editLimits for one of them, with which it answers.
func (c *Call) editLimit(ctx context.Context, m mode, change func(r *reader, is *[]catalog.RateLimit) (int, error)) (Answer, error) {
	made, err := c.editLimits(ctx, m, change)
	if err != nil {
		return Answer{}, err
	}
	made.Modified = c.now()
	for _, l := range c.api.mesh.Catalog().RateLimits() {
		if l.ID == made.ID && l.Version == made.Version {
			made = l
		}
	}
	return Answer{Result: show(&made, rateLimitFields, c.now())}, nil
}

// editLimits has the rate limits become what change makes of a copy of them, if that can
// be. It returns the one whose place change returns, unless that is allOfThem.
func (c *Call) editLimits(ctx context.Context, m mode, change func(r *reader, is *[]catalog.RateLimit) (int, error)) (made catalog.RateLimit, err error) {
	err = c.write(ctx, func(cat *catalog.Catalog) ([]catalog.Write, error) {
		was, is := cat.RateLimits(), cat.RateLimits()
		r := &reader{mode: m, body: c.body}
		at, err := change(r, &is)
		if err != nil {
			return nil, err
		}
		c.checkLimits(r, was, is, at)
		if len(r.mistakes) > 0 {
			return nil, bad(r.mistakes...)
		}
		if at != allOfThem {
			made = is[at]
		}
		return cat.LimitWrites(was, is), nil
	})
	return made, err
}

// checkLimits adds what is wrong with the rate limit at a place, or with all of them, to
// what r has found itself. What was wrong with one before, since changes at two nodes did
// not go together, does not keep anybody from changing something else.
func (c *Call) checkLimits(r *reader, was, is []catalog.RateLimit, at int) {
	switch {
	case r.body.kind != kindObject: // nothing of it was read
		return
	case len(is) > limit.MaxRules && len(is) > len(was):
		r.mistakes = append(r.mistakes, Mistake{Code: CodeConflict, Message: fmt.Sprintf("there would be %d rate limits, and there may be %d; delete one first, or leave one out", len(is), limit.MaxRules)})
		return
	}
	check := catalog.LimitCheck(c.api.mesh.CheckLimit).Once()
	found := fieldsOf(r.mistakes)
	for i := range is {
		prefix := ""
		switch {
		case at == allOfThem:
			prefix = limitList.at(i) + "."
		case at != i:
			continue
		}
		if slices.Contains(found, strings.TrimSuffix(prefix, ".")) { // it was no object
			continue
		}
		var before []error
		if j := slices.IndexFunc(was, func(l catalog.RateLimit) bool { return l.ID == is[i].ID }); j >= 0 {
			before = catalog.CheckLimit(was, j, check)
		}
		after := catalog.CheckLimit(is, i, check)
		for _, err := range newLeaves(errors.Join(before...), errors.Join(after...)) {
			if m := r.limitMistake(err, prefix); m.Field == "" || !slices.Contains(found, m.Field) {
				r.mistakes = append(r.mistakes, m)
			}
		}
	}
}

// limitMistake tells of an error of catalog.CheckLimit in the spelling of a request.
func (r *reader) limitMistake(err error, prefix string) Mistake {
	e, ok := errors.AsType[*room.FieldError](err)
	if !ok {
		return Mistake{Code: CodeConflict, Message: err.Error()}
	}
	return r.fieldMistake(e, prefix+e.Field, true, e.Allowed)
}
