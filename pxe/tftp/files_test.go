package tftp

import (
	"bytes"
	"testing"
)

func TestJoinedFilesBeginAtMultiplesOfFour(t *testing.T) {
	var want []byte
	all := &joined{}
	for i, size := range []int{5, 0, 4, 1, 1468, 3} {
		part := bytes.Repeat([]byte{byte('a' + i)}, size)
		all.add(Memory(part))
		want = append(want, part...)
		want = append(want, make([]byte, -len(part)&3)...)
	}
	if all.Size() != int64(len(want)) {
		t.Fatalf("%d bytes, want %d", all.Size(), len(want))
	}
	for _, block := range []int{1, 3, 8, 512, 4096} {
		var got []byte
		for off := 0; off < len(want); off += block {
			p := make([]byte, min(block, len(want)-off))
			if n, err := all.ReadAt(p, int64(off)); n != len(p) || err != nil {
				t.Fatalf("blocks of %d: %d bytes at %d: %v", block, n, off, err)
			}
			got = append(got, p...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("blocks of %d: the content differs", block)
		}
	}
}
