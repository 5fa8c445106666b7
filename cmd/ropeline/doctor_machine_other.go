//go:build !linux

package main

func (d *doctor) checkBuffers() {}

func (d *doctor) checkFiles() {}

func (d *doctor) checkClock() {}

func inMemory(string) bool { return false }

func freeBytes(string) (uint64, bool) { return 0, false }
