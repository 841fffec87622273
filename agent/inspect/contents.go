package inspect

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	headBytes     = 136 << 10 // of a disk or partition: every signature below lies in it, but for those at the end
	maxPartitions = 128
	maxProbed     = 16 // partitions that the agent reads: a disk may be slow, or broken
)

// Contents describes what is on a disk in words, from its partition table and the signatures of file systems. It
// reads at most a few megabytes and trusts nothing in them. An admin reads it before a wipe.
func Contents(r io.ReaderAt, size int64, sector int) string {
	if sector < 512 || sector > 4096 {
		sector = 512
	}
	head := readAt(r, 0, headBytes, size)
	if head == nil {
		return "cannot be read"
	}
	if kind := signature(head); kind != "" {
		return kind
	}
	if kind := endSignature(r, size); kind != "" {
		return kind
	}
	label, parts := "gpt", gpt(r, head, size, sector)
	if parts == nil {
		label, parts = "mbr", mbr(head, size, sector)
	}
	if parts == nil {
		if isZero(head) {
			return "empty"
		}
		return "unknown data"
	}
	if len(parts) == 0 {
		return label + ", no partitions"
	}
	return fmt.Sprintf("%s, %s: %s", label, plural(len(parts), "partition"), strings.Join(kinds(r, parts), ", "))
}

// extent is where a partition lies, in bytes.
type extent struct{ at, size int64 }

// kinds reads what partitions hold, in order. It names equal neighbours once.
func kinds(r io.ReaderAt, parts []extent) (words []string) {
	for i, p := range parts {
		if i == maxProbed {
			words = append(words, "...")
			break
		}
		word := "unknown data"
		if head := readAt(r, p.at, headBytes, p.at+p.size); head == nil {
			word = "unreadable"
		} else if kind := signature(head); kind != "" {
			word = kind
		} else if isZero(head) {
			word = "empty"
		}
		words = append(words, word)
	}
	return slices.Compact(words)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// readAt reads up to n bytes that lie before end; nil when there are none, or the device fails.
func readAt(r io.ReaderAt, at, n, end int64) []byte {
	if at < 0 || end <= at {
		return nil
	}
	buf := make([]byte, min(n, end-at))
	got, err := r.ReadAt(buf, at)
	if got == 0 || err != nil && err != io.EOF { //nolint:errorlint // io.ReaderAt promises io.EOF itself
		return nil
	}
	return buf[:got]
}

func isZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// gpt returns the partitions of a GUID partition table (UEFI 2.10 section 5.3); nil when there is none.
func gpt(r io.ReaderAt, head []byte, size int64, sector int) []extent {
	if len(head) < 2*sector || string(head[sector:sector+8]) != "EFI PART" {
		return nil
	}
	h := head[sector:]
	at := int64(binary.LittleEndian.Uint64(h[72:])) * int64(sector)
	n, entry := binary.LittleEndian.Uint32(h[80:]), binary.LittleEndian.Uint32(h[84:])
	parts := []extent{}
	if n > maxPartitions || entry < 128 || entry > 4096 || at <= 0 {
		return parts
	}
	table := readAt(r, at, int64(n*entry), size)
	for ; len(table) >= int(entry); table = table[entry:] {
		first, last := int64(binary.LittleEndian.Uint64(table[32:])), int64(binary.LittleEndian.Uint64(table[40:]))
		if isZero(table[:16]) || first <= 0 || last < first || last >= size/int64(sector) {
			continue
		}
		parts = append(parts, extent{first * int64(sector), (last - first + 1) * int64(sector)})
	}
	return parts
}

// mbr returns the primary partitions of a DOS table; nil when there is none. An extended one counts as one.
func mbr(head []byte, size int64, sector int) []extent {
	if len(head) < 512 || head[510] != 0x55 || head[511] != 0xaa {
		return nil
	}
	parts := []extent{}
	for i := range 4 {
		e := head[446+16*i : 462+16*i]
		first, n := int64(binary.LittleEndian.Uint32(e[8:])), int64(binary.LittleEndian.Uint32(e[12:]))
		if e[0]&0x7f != 0 { // neither active nor inactive: boot code, not a table
			return nil
		}
		if e[4] == 0 || n == 0 || first == 0 || first >= size/int64(sector) {
			continue
		}
		parts = append(parts, extent{first * int64(sector), min(n*int64(sector), size-first*int64(sector))})
	}
	return parts
}
