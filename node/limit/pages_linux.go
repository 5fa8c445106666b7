package limit

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// inHugePages asks for memory to be in pages of some megabytes, where the kernel has them
// for who asks. A key of millions is in no cache; in small pages, where its page is
// is in none either, and finding that takes as long as reading the key.
func inHugePages(sets []set) {
	if len(sets) == 0 {
		return
	}
	all := unsafe.Slice((*byte)(unsafe.Pointer(&sets[0])), len(sets)*int(unsafe.Sizeof(sets[0])))
	page := unix.Getpagesize() // what is asked for has to begin with one
	begin := -int(uintptr(unsafe.Pointer(&sets[0]))) & (page - 1)
	if begin >= len(all) {
		return
	}
	// The kernel's no means that there are no such pages: all goes on, slower.
	_ = unix.Madvise(all[begin:], unix.MADV_HUGEPAGE)
}
