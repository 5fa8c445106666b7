// Package check has no code: its tests build a release and install it, and hold what
// deploy/package, deploy/docker and deploy/helm say against the binary and against the
// libraries of the programs that read it. It is a module of its own, so that nobody who
// builds ropeline needs these. It also says which nfpm writes the packages.
package check
