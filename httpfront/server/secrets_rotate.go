package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ropeline/ropeline/httpfront/operator/manage"
	"github.com/ropeline/ropeline/transport"
)

// How a new secret gets into the files of all nodes by itself.

// next returns a secret that is to take the place of the one that is used. While one is on its
// way it is that one: there may be nodes that have not got it.
func (s *secrets) next() (transport.Secret, error) {
	given, _, err := s.read()
	if err != nil {
		return transport.Secret{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if newest := given[0].ID(); newest != s.rotation.Uses() {
		return given[0], nil
	}
	if len(given) == transport.MaxSecrets {
		return transport.Secret{}, fmt.Errorf("%w: %s has %d secrets, and more are not allowed; take those out that no node uses", manage.ErrNotNow, s.path, len(given))
	}
	return given[0].Next(), nil
}

// add puts a secret in front of those in the file. The file is replaced as a whole.
func (s *secrets) add(next transport.Secret) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	given, _, err := s.read()
	if err != nil {
		return err
	}
	if slices.Contains(given, next) {
		return nil
	}
	text := next.Text() + "\n"
	for _, g := range given {
		text += g.Text() + "\n"
	}
	if _, err := transport.ParseSecrets(text); err != nil {
		return fmt.Errorf("secret %s: %w", next.ID(), err)
	}
	f, err := os.CreateTemp(filepath.Dir(s.path), filepath.Base(s.path)+".new-*")
	if err != nil {
		return fmt.Errorf("the folder of %s cannot be written: give every node a file with the new secret by other means: %w", s.path, err)
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if info, statErr := os.Stat(s.path); statErr == nil {
		err = errors.Join(err, os.Chmod(f.Name(), info.Mode().Perm()))
	}
	if err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
		return fmt.Errorf("write the secret to %s: %w", s.path, err)
	}
	s.log.Info("a new secret stands in the file", "file", s.path, "secret", next.ID().String())
	return nil
}

// take takes a new secret from another node. What is wrong is the answer, in words.
func (s *secrets) take(_ context.Context, from transport.Peer, req []byte) ([]byte, error) {
	next, err := transport.ParseSecret(string(req))
	if err == nil {
		err = s.add(next)
	}
	if err != nil {
		s.log.Error("another node has a new secret for all, and it cannot be taken", "peer", from.Name, "error", err)
		return []byte(err.Error()), nil
	}
	return nil, nil
}

// WriteSecret writes secrets to a new file, and leaves none if that fails. It never overwrites: a lost secret logs every
// visitor out.
func WriteSecret(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the secret: %w", err)
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the secret to %s: %w", path, errors.Join(err, os.Remove(path)))
	}
	return nil
}
