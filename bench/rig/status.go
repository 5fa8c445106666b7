package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/ropeline/ropeline/node"
)

// StatusAt asks the node with an admin API at host:port what it sees.
func StatusAt(ctx context.Context, client *http.Client, admin string) (s node.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/status", nil)
	if err != nil {
		return s, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("status at %s: %s", admin, resp.Status)
	}
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// Alive returns how many peers a node holds to be alive.
func Alive(s node.Status) int {
	n := 0
	for _, p := range s.Peers {
		if p.State == "alive" {
			n++
		}
	}
	return n
}
