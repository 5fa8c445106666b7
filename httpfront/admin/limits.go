package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
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
		{Method: http.MethodGet, Path: one, Scope: Read, ID: "getRateLimit", Tag: tag, Summary: "Shows a rate limit.", Answer: Ref("RateLimit"), Handle: getLimit},
		{Method: http.MethodPut, Path: one, Scope: Write, ID: "replaceRateLimit", Tag: tag, Summary: "Replaces a rate limit. What is left out gets its default.", Body: Ref("RateLimitNew"), Answer: Ref("RateLimit"), Handle: changeLimit(replace)},
		{Method: http.MethodPatch, Path: one, Scope: Write, ID: "changeRateLimit", Tag: tag, Summary: "Changes what is named of a rate limit, or moves it.", Body: Ref("RateLimitChange"), Answer: Ref("RateLimit"), Handle: changeLimit(change)},
		{Method: http.MethodDelete, Path: one, Scope: Write, ID: "deleteRateLimit", Tag: tag, Summary: "Deletes a rate limit.", Answer: Ref("Deleted"), Handle: deleteLimit},
	}
}

// limitAt returns the place of the rate limit that a request is about, by its id or name.
func (c *Call) limitAt(all []catalog.RateLimit) (int, error) {
	given := c.params["limit"]
	if id, err := limit.ParseID(given); err == nil {
		if i := slices.IndexFunc(all, func(l catalog.RateLimit) bool { return l.ID == id }); i >= 0 {
			return i, nil
		}
	}
	var at []int
	var ids []string
	for i := range all {
		if all[i].Name == given {
			at, ids = append(at, i), append(ids, all[i].ID.String())
		}
	}
	switch len(at) {
	case 0:
		return 0, Refuse(http.StatusNotFound, CodeNoLimit, "there is no rate limit %q", shorten(given))
	case 1:
		return at[0], nil
	}
	return 0, Refuse(http.StatusConflict, CodeSeveral, "several rate limits are called %q; ask for one of them by its id: %s", given, strings.Join(ids, ", "))
}

func listLimits(_ context.Context, c *Call) (Answer, error) {
	all := []members{}
	for _, l := range c.api.mesh.Catalog().RateLimits() {
		all = append(all, show(&l, rateLimitFields, c.now()))
	}
	return paged(c, all)
}

func getLimit(_ context.Context, c *Call) (Answer, error) {
	all := c.api.mesh.Catalog().RateLimits()
	i, err := c.limitAt(all)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Result: show(&all[i], rateLimitFields, c.now())}, nil
}

func createLimit(ctx context.Context, c *Call) (Answer, error) {
	var id limit.ID
	if _, err := io.ReadFull(c.api.cfg.Rand, id[:]); err != nil {
		return Answer{}, fmt.Errorf("id of a rate limit: %w", err)
	}
	return c.editLimits(ctx, create, func(r *reader, is *[]catalog.RateLimit) (int, error) {
		made := decode(r, c.body, placedRateLimitFields, &placed[catalog.RateLimit]{of: newLimit()}, nil)
		made.of.ID, made.of.Version, made.of.Created = id, 1, c.now()
		return made.put(r, is, len(*is), limitID), nil
	})
}

func changeLimit(m mode) Handler {
	return func(ctx context.Context, c *Call) (Answer, error) {
		return c.editLimits(ctx, m, func(r *reader, is *[]catalog.RateLimit) (int, error) {
			i, err := c.limitAt(*is)
			if err != nil {
				return 0, err
			}
			was := placed[catalog.RateLimit]{of: (*is)[i]}
			if was.of.Incomplete {
				return 0, Refuse(http.StatusConflict, CodeFailed, "the content of the rate limit %q has not arrived at this node yet", was.of.Name)
			}
			made := decode(r, c.body, placedRateLimitFields, &placed[catalog.RateLimit]{of: newLimit()}, &was)
			made.of.ID, made.of.Version, made.of.Created = was.of.ID, was.of.Version, was.of.Created
			if !reflect.DeepEqual(made.of.Rule, was.of.Rule) {
				made.of.Version++
			}
			*is = slices.Delete(*is, i, i+1)
			return made.put(r, is, i, limitID), nil
		})
	}
}

func deleteLimit(ctx context.Context, c *Call) (Answer, error) {
	var id limit.ID
	err := c.api.mesh.Edit(ctx, func(cat *catalog.Catalog) ([]catalog.Write, error) {
		was := cat.RateLimits()
		i, err := c.limitAt(was)
		if err != nil {
			return nil, err
		}
		id = was[i].ID
		return catalog.LimitWrites(was, slices.Delete(cat.RateLimits(), i, i+1)), nil
	})
	if err != nil {
		return Answer{}, err
	}
	return Answer{Result: members{{"id", id.String()}}}, nil
}

// editLimits has the rate limits become what change makes of a copy of them, if that can
// be, and answers with the one whose place it returns.
func (c *Call) editLimits(ctx context.Context, m mode, change func(r *reader, is *[]catalog.RateLimit) (int, error)) (Answer, error) {
	var made catalog.RateLimit
	err := c.api.mesh.Edit(ctx, func(cat *catalog.Catalog) ([]catalog.Write, error) {
		was, is := cat.RateLimits(), cat.RateLimits()
		r := &reader{mode: m, body: c.body}
		i, err := change(r, &is)
		if err != nil {
			return nil, err
		}
		r.checkedLimits(catalog.CheckLimits(is, c.api.mesh.CheckLimit), i)
		if len(r.mistakes) > 0 {
			return nil, bad(r.mistakes...)
		}
		made = is[i]
		return catalog.LimitWrites(was, is), nil
	})
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

// checkedLimits adds what is wrong with the rate limit at a place to what r has found
// itself. What is wrong with others is theirs, but where there are too many.
func (r *reader) checkedLimits(err error, at int) {
	own := fmt.Sprintf("rate-limits[%d].", at)
	found := fieldsOf(r.mistakes)
	for _, e := range leaves(err) {
		fe, ok := errors.AsType[*room.FieldError](e)
		if !ok {
			r.mistakes = append(r.mistakes, Mistake{Code: CodeConflict, Message: e.Error()})
			continue
		}
		name, mine := strings.CutPrefix(fe.Field, own)
		name = strings.ReplaceAll(name, "-", "_")
		switch {
		case fe.Field == "rate-limits":
			r.mistakes = append(r.mistakes, Mistake{Code: CodeConflict, Message: "there are as many rate limits as there may be, which is " + fmt.Sprint(limit.MaxRules) + "; delete one first"})
		case !mine || slices.Contains(found, name):
		case fe.Problem != "":
			r.mistakes = append(r.mistakes, Mistake{Code: CodeRefused, Message: name + ": " + fe.Problem, Field: name})
		default:
			given := value{kind: kindText, text: fe.Value}
			if v, there := r.body.lookup(name); there && (v.kind != kindText || len(v.text) <= maxShown) {
				given = v
			}
			r.mistakes = append(r.mistakes, refused(CodeRefused, name, given, fe.Allowed))
		}
	}
}
