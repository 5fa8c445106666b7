package page

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// shownText returns the text of the body that is not hidden, each piece on a line, and
// checks that what is opened is closed.
func shownText(t *testing.T, page []byte) string {
	t.Helper()
	var pieces []string
	var open []atom.Atom
	hidden := 0 // how many of open, from this one on, are not seen; 0: all are
	z := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("the page leaves %v open", open)
			}
			return strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(strings.Join(pieces, "\n")) + "\n"
		case html.StartTagToken:
			tag := z.Token()
			if tag.DataAtom == atom.Meta {
				continue
			}
			open = append(open, tag.DataAtom)
			isHidden := tag.DataAtom == atom.Head || tag.DataAtom == atom.Script || tag.DataAtom == atom.Noscript
			for _, a := range tag.Attr {
				isHidden = isHidden || a.Key == "hidden"
			}
			if isHidden && hidden == 0 {
				hidden = len(open)
			}
		case html.EndTagToken:
			tag := z.Token()
			if len(open) == 0 || open[len(open)-1] != tag.DataAtom {
				t.Fatalf("</%s> while %v is open", tag.Data, open)
			}
			if hidden == len(open) {
				hidden = 0
			}
			open = open[:len(open)-1]
		case html.TextToken:
			if text := strings.TrimSpace(string(z.Text())); text != "" && hidden == 0 {
				pieces = append(pieces, text)
			}
		}
	}
}
