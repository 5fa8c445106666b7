package check

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	setMax = 64 << 10 // bytes of a JWK set

	// fetchEvery is how often a request may have the keys fetched, because it names
	// one that is not known: whoever makes up names must not make us ask for each.
	fetchEvery = 5 * time.Second
)

// keys are those that proofs are checked against, by id.
type keys struct {
	cfg   *Config
	known atomic.Pointer[map[string]ed25519.PublicKey] // replaced as a whole

	mu      sync.Mutex // held while keys are fetched; guards the following
	fetched time.Time  // when that was tried last
	first   int        // of the addresses, the one that answered last
}

func newKeys(cfg *Config) *keys {
	k := &keys{cfg: cfg}
	known := maps.Clone(cfg.Keys)
	k.known.Store(&known)
	return k
}

// find returns the key of that id. Where it is not known the keys are fetched, unless
// that was tried a moment ago.
func (k *keys) find(ctx context.Context, id string) (ed25519.PublicKey, error) {
	if key, ok := (*k.known.Load())[id]; ok {
		return key, nil
	}
	// Who has keys does not wait for those that somebody else is fetching: a key is
	// published long before it is used, so this one is hardly among them.
	if len(k.cfg.JWKS) > 0 && k.lock(len(*k.known.Load()) == 0) {
		if now := k.cfg.now(); k.fetched.IsZero() || now.Sub(k.fetched) >= fetchEvery {
			// Others need the keys as well, whatever becomes of this request.
			if err := k.fetchLocked(context.WithoutCancel(ctx), now); err != nil {
				k.cfg.Logger.Warn("keys of the waiting room cannot be fetched; those at hand are used on", "error", err)
			}
		}
		k.mu.Unlock()
	}
	known := *k.known.Load()
	if len(known) == 0 {
		return nil, ErrNoKeys
	}
	if key, ok := known[id]; ok {
		return key, nil
	}
	return nil, fmt.Errorf("%w: the key %.64q is not known", ErrNoProof, id)
}

// lock reports whether it has locked mu; it does not wait for it unless it is told to.
func (k *keys) lock(wait bool) bool {
	if wait {
		k.mu.Lock()
		return true
	}
	return k.mu.TryLock()
}

func (k *keys) fetch(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fetchLocked(ctx, k.cfg.now())
}

// fetchLocked asks the addresses in turn, the one that answered last first.
func (k *keys) fetchLocked(ctx context.Context, now time.Time) error {
	k.fetched = now
	var errs []error
	for i := range k.cfg.JWKS {
		at := (k.first + i) % len(k.cfg.JWKS)
		got, err := k.get(ctx, k.cfg.JWKS[at])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		maps.Copy(got, k.cfg.Keys)
		k.known.Store(&got)
		k.first = at
		return nil
	}
	return errors.Join(errs...)
}

// get fetches a JWK set. Keys of other kinds are passed over.
func (k *keys) get(ctx context.Context, addr string) (map[string]ed25519.PublicKey, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, addr, nil)
	if err != nil {
		return nil, err
	}
	resp, err := k.cfg.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %s", addr, resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, setMax+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	if len(text) > setMax {
		return nil, fmt.Errorf("%s: more than %d bytes", addr, setMax)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	got := map[string]ed25519.PublicKey{}
	for _, key := range set.Keys {
		if pub, ok := key.Key.(ed25519.PublicKey); ok && key.KeyID != "" && (key.Use == "" || key.Use == "sig") {
			got[key.KeyID] = pub
		}
	}
	if len(got) == 0 {
		return nil, fmt.Errorf("%s: no Ed25519 key in it", addr)
	}
	return got, nil
}
