package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

// What was recorded of one server is what the other answers.
func TestRecordedAnswersAreGivenAgain(t *testing.T) {
	want := recording{Status: http.StatusAccepted, Fields: [][2]string{{"Content-Type", "text/html; charset=utf-8"}, {"Refresh", "20"}, {"Set-Cookie", "a=1; Path=/"}}, Body: []byte(`<p class="a">$5 \ `)}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "answer")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	listen, err := rig.Free()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, listen, file) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	var resp *http.Response
	if !rig.Until(ctx, 10*time.Second, time.Millisecond, func() bool {
		resp, err = ask(ctx, listen, head(""))
		return err == nil
	}) {
		t.Fatal(err)
	}
	if got, err := record(resp); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestNothingIsServedOfAFileThatIsNoRecording(t *testing.T) {
	if err := Serve(t.Context(), "127.0.0.1:0", "recording_test.go"); err == nil {
		t.Error("it was served")
	}
}
