//go:build !linux

// Package rig hurts meshes of real processes. It needs Linux; elsewhere it is
// empty.
package rig
