package certs

import (
	"crypto/x509"
	"errors"
)

// Roots reads the certificates of authorities from a file of PEM. It is an error if
// there is none.
func Roots(file string) (*x509.CertPool, error) {
	text, err := ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New(file + " has no certificate in PEM")
	}
	return roots, nil
}
