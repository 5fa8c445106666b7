// Package certs has the TLS certificates that an operator keeps in files: it reads
// them, takes them in anew when they change, and picks the one for a visitor.
//
// Files are looked at by reading them every few seconds, not by asking the kernel to
// tell of changes: a certificate may be replaced by writing into the file, by renaming
// another one over it, by a new target for a link anywhere on the way (as Kubernetes and
// certbot do it), or on a file system whose changes are made elsewhere. Reading sees all
// of these alike, and costs a few system calls.
package certs
