package main

import (
	_ "embed"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cbroglie/mustache"
)

//go:embed demo_shop.html
var shopPages string

// shopPicture is the partial of shopPages that draws a product.
const shopPicture = `<svg viewBox="0 0 300 200" role="img" aria-label="{{Name}}"><rect width="300" height="200" fill="{{Sky}}"/>` +
	`<ellipse cx="150" cy="168" rx="88" ry="9" fill="#0002"/><path d="{{Shape}}" fill="{{Color}}"/></svg>`

// product is one thing on the shelf of the demonstration's shop.
type product struct {
	ID         int
	Name, Text string
	Price      string
	Sky, Color string
	Shape      string // an SVG path
}

// shopProducts is the whole range.
func shopProducts() []product {
	return []product{
		{
			ID: 1, Name: "Stoneware bowl", Price: "€ 34", Sky: "#e9d8c3", Color: "#7a5c45",
			Text:  "Thrown by hand, fired twice, and a little different each time.",
			Shape: "M60 85h180c0 50-40 80-90 80s-90-30-90-80z",
		},
		{
			ID: 2, Name: "Linen cushion", Price: "€ 48", Sky: "#cfe0db", Color: "#3f7d74",
			Text:  "Washed until soft. Filled with spelt that smells of summer.",
			Shape: "M75 60q75 20 150 0-15 52 0 104-75-20-150 0 15-52 0-104z",
		},
		{
			ID: 3, Name: "Copper kettle", Price: "€ 96", Sky: "#f1dccb", Color: "#b86a3d",
			Text:  "It sings when the water boils, and it goes on for decades.",
			Shape: "M100 80q50-45 100 0l15 85H85zM205 100l40-25 8 8-40 42zM120 62q30-50 60 0l-8 4q-22-34-44 0z",
		},
		{
			ID: 4, Name: "Reading lamp", Price: "€ 79", Sky: "#d9d6e8", Color: "#4b4680",
			Text:  "Warm light for one page, and not for the rest of the room.",
			Shape: "M120 40h60l25 55H95zM145 95h10v62h-10zM115 157h70v10h-70z",
		},
		{
			ID: 5, Name: "Honey, one jar", Price: "€ 12", Sky: "#f6e7b8", Color: "#c88a12",
			Text:  "From forty hives on a hillside. There is a line for this one.",
			Shape: "M110 45h80v16h-80zM100 66h100q10 50 0 98H100q-10-48 0-98z",
		},
		{
			ID: 6, Name: "Wooden boat", Price: "€ 27", Sky: "#c9dff0", Color: "#8a5a33",
			Text:  "Cut from one piece of larch. It floats, mostly upright.",
			Shape: "M55 135h190l-30 32H85zM146 40h7v90h-7zM157 48l62 78h-62zM142 62v64H92z",
		},
	}
}

// shop is the site behind the room in the demonstration. It keeps nothing: the
// basket is in the visitor's own cookie, which also shows that the room leaves
// the cookies of others alone.
type shop struct {
	pages    *mustache.Template
	products []product
	session  time.Duration
	log      *slog.Logger
}

// newShop returns the shop's pages. They tell visitors that a place is kept for
// session after each click.
func newShop(session time.Duration, log *slog.Logger) http.Handler {
	pages, err := mustache.ParseStringPartials(shopPages, &mustache.StaticProvider{Partials: map[string]string{"picture": shopPicture}})
	if err != nil {
		panic(err) // it is part of the program, and each test of the shop renders it
	}
	s := &shop{
		pages:    pages,
		products: shopProducts(),
		session:  session,
		log:      log,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		s.show(w, r, http.StatusOK, shopPage{Title: "Shelf", Shelf: &products{s.products}})
	})
	mux.HandleFunc("GET /product/{id}", s.product)
	mux.HandleFunc("GET /cart", s.cart)
	mux.HandleFunc("POST /cart", s.add)
	mux.HandleFunc("/", s.none)
	return mux
}

// shopPaths lists what simulated visitors look at.
func shopPaths() []string {
	paths := []string{"/", "/", "/cart"}
	for _, p := range shopProducts() {
		paths = append(paths, "/product/"+strconv.Itoa(p.ID))
	}
	return paths
}

// shopPage is what a page shows: one of Shelf, Product, Basket, Empty and None, below what each page has.
type shopPage struct {
	Title          string
	Count, Seconds int
	Shelf, Basket  *products
	Product        *product
	Empty, None    bool
}

type products struct{ Products []product }

// basketCookie holds the ids of what is in the basket, joined by points.
const (
	basketCookie = "basket"
	maxBasket    = 20
)

func (s *shop) show(w http.ResponseWriter, r *http.Request, status int, page shopPage) {
	page.Count = len(s.basket(r))
	page.Seconds = int(s.session.Seconds())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := s.pages.FRender(w, page); err != nil {
		s.log.Debug("page not sent", "page", page.Title, "error", err)
	}
}

func (s *shop) product(w http.ResponseWriter, r *http.Request) {
	p, ok := s.find(r.PathValue("id"))
	if !ok {
		s.none(w, r)
		return
	}
	s.show(w, r, http.StatusOK, shopPage{Title: p.Name, Product: &p})
}

func (s *shop) cart(w http.ResponseWriter, r *http.Request) {
	page := shopPage{Title: "Basket"}
	if in := s.basket(r); len(in) > 0 {
		page.Basket = &products{in}
	} else {
		page.Empty = true
	}
	s.show(w, r, http.StatusOK, page)
}

func (s *shop) add(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<10)
	p, ok := s.find(r.PostFormValue("id"))
	if !ok {
		s.none(w, r)
		return
	}
	var ids []string
	for _, old := range s.basket(r) {
		ids = append(ids, strconv.Itoa(old.ID))
	}
	if len(ids) < maxBasket {
		ids = append(ids, strconv.Itoa(p.ID))
	}
	http.SetCookie(w, &http.Cookie{
		Name: basketCookie, Value: strings.Join(ids, "."), Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	http.Redirect(w, r, "/cart", http.StatusSeeOther)
}

func (s *shop) none(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, http.StatusNotFound, shopPage{Title: "Not found", None: true})
}

func (s *shop) find(id string) (product, bool) {
	n, err := strconv.Atoi(id)
	if err != nil || n < 1 || n > len(s.products) {
		return product{}, false
	}
	return s.products[n-1], true
}

func (s *shop) basket(r *http.Request) []product {
	c, err := r.Cookie(basketCookie)
	if err != nil {
		return nil
	}
	var in []product
	for id := range strings.SplitSeq(c.Value, ".") {
		if p, ok := s.find(id); ok && len(in) < maxBasket {
			in = append(in, p)
		}
	}
	return in
}
