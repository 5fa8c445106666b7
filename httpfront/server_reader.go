package httpfront

import (
	"bufio"
	"errors"
	"io"
	"reflect"
	"strings"

	"github.com/valyala/fasthttp"
)

// serverReader gets at the reader from which the server has read the head of a
// request, and which holds the beginning of its body. The server hands out a
// stream around it that decodes chunks, and keeps the reader to itself; so it is
// taken from the stream by the name of its field. Whether this library has that
// field is found out once, when a front is made.
type serverReader struct{ field int }

const serverReaderField = "reader"

var errServerReader = errors.New("this version of fasthttp keeps the reader of a request elsewhere than in the field " + serverReaderField + " of its body")

// newServerReader has the library make a stream around a reader that is known,
// and looks whether it is found there.
func newServerReader() (serverReader, error) {
	br := bufio.NewReader(strings.NewReader("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"))
	var req fasthttp.Request
	if err := req.Header.Read(br); err != nil {
		return serverReader{}, err
	}
	if err := req.ContinueReadBodyStream(br, 1, false); err != nil {
		return serverReader{}, err
	}
	defer req.CloseBodyStream()
	stream := req.BodyStream()
	t := reflect.TypeOf(stream)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return serverReader{}, errServerReader
	}
	f, ok := t.Elem().FieldByName(serverReaderField)
	if !ok || f.Type != reflect.TypeFor[*bufio.Reader]() || len(f.Index) != 1 {
		return serverReader{}, errServerReader
	}
	r := serverReader{f.Index[0]}
	if r.of(stream) != br {
		return serverReader{}, errServerReader
	}
	return r, nil
}

// of returns the reader below a stream of the server.
func (r serverReader) of(stream io.Reader) *bufio.Reader {
	return (*bufio.Reader)(reflect.ValueOf(stream).Elem().Field(r.field).UnsafePointer())
}

// body returns the body of a request, nil if it has none. It is the same one each
// time, so that whoever reads on does so where the last one stopped.
func (r serverReader) body(ctx *fasthttp.RequestCtx, req *request) io.Reader {
	stream := ctx.RequestBodyStream()
	switch {
	case req.body != nil || stream == nil || !req.hasBody():
	case req.length == lengthChunked:
		req.body = &chunkReader{br: r.of(stream)}
	default:
		req.body = stream
	}
	return req.body
}
