//go:build linux

package heavy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// origin is the site behind the node:
//
//	/up    says how many bytes it got
//	/down  sends as many zeros as the query says, with a length or in chunks
//	/echo  takes an upgrade, and sends back what it gets
//	/      a page
func origin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/up", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, " ", err)
	})
	mux.HandleFunc("/down", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.ParseInt(r.URL.Query().Get("bytes"), 10, 64)
		if r.URL.Query().Get("chunks") == "" {
			w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
		}
		io.Copy(w, io.LimitReader(zeros{}, n))
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		buf := make([]byte, 64) // io.Copy would splice, which takes two files more for each
		for {
			n, err := rw.Read(buf)
			if err != nil {
				return
			}
			if _, err := c.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a page") })
	return mux
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
