package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
)

// Answer is an answer that was recorded, to be given again byte by byte. The zero value is an empty one without a status.
type Answer struct {
	Status int         `json:"status"`
	Fields [][2]string `json:"fields"` // without those that a server writes by itself: Date, Content-Length, Connection
	Body   []byte      `json:"body"`
}

// Plain is an answer of size bytes of text.
func Plain(size int) Answer {
	body := make([]byte, size)
	for i := range body {
		body[i] = 'x'
	}
	return Answer{Status: http.StatusOK, Fields: [][2]string{{"Content-Type", "text/plain"}}, Body: body}
}

// Record takes down resp, whose body it reads and closes.
func Record(resp *http.Response) (Answer, error) {
	defer resp.Body.Close()
	a := Answer{Status: resp.StatusCode}
	for name, values := range resp.Header {
		if slices.Contains([]string{"Date", "Content-Length", "Connection", "Server"}, name) {
			continue
		}
		for _, v := range values {
			a.Fields = append(a.Fields, [2]string{name, v})
		}
	}
	slices.SortFunc(a.Fields, func(x, y [2]string) int { return slices.Compare(x[:], y[:]) })
	var err error
	a.Body, err = io.ReadAll(resp.Body)
	return a, err
}

// Save writes a into a file, from which Run reads it.
func (a Answer) Save(path string) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

func load(path string) (a Answer, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}
