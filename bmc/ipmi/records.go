package ipmi

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/bougou/go-ipmi/pkg/types"

	"slipway.dev/slipway/inventory"
)

// Bounds of what a controller may make us read.
const (
	maxSDR      = 1024
	maxFRU      = 4096
	maxChunk    = 32 // bytes of a record or FRU in one answer that every controller can give
	lastRecord  = 0xffff
	sdrHeaderN  = 5
	selRecordN  = 16
	maxSDRBytes = sdrHeaderN + 255
)

// decode calls a decoder of go-ipmi and turns a panic into an error: its decoders index into records without checking
// their length.
func decode[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("malformed record: %v", r)
		}
	}()
	return f()
}

// records reads the sensor data records, and skips those that it cannot decode. A list that leads back to itself, or
// has more than maxSDR records, is an error: some firmware returns such lists.
func (d *driver) records(ctx context.Context) ([]*types.SDR, error) {
	const doing = "read the sensor list"
	reservation, err := d.reserve(ctx, doing, cmdReserveSDR)
	if err != nil {
		return nil, err
	}
	var (
		all      []*types.SDR
		restartN int
		seen     = map[uint16]bool{}
	)
	for id := uint16(0); id != lastRecord; {
		if seen[id] || len(seen) >= maxSDR {
			return nil, inventory.Errorf(inventory.Unavailable, "%s: the list of the IPMI controller at %s has no end", doing, d.address)
		}
		raw, next, err := d.record(ctx, doing, reservation, id)
		// Another session has changed the list. The same record is read again under a new reservation.
		if codeOf(err) == codeReservation && restartN < 3 {
			restartN++
			if reservation, err = d.reserve(ctx, doing, cmdReserveSDR); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		seen[id] = true
		if r, err := decode(func() (*types.SDR, error) { return types.ParseSDR(raw, next) }); err == nil {
			all = append(all, r)
		}
		id = next
	}
	return all, nil
}

// reserve starts a reading that another session may not disturb.
func (d *driver) reserve(ctx context.Context, doing string, cmd byte) ([]byte, error) {
	got, err := d.do(ctx, doing, netStorage, cmd)
	if err != nil {
		return nil, err
	}
	if len(got) < 2 {
		return nil, d.short(doing)
	}
	return got[:2], nil
}

// record reads one sensor data record in pieces of 16 bytes, which every controller can send, and the id of the next
// one.
func (d *driver) record(ctx context.Context, doing string, reservation []byte, id uint16) (raw []byte, next uint16, err error) {
	for n := sdrHeaderN; len(raw) < n; {
		ask := append([]byte{reservation[0], reservation[1], byte(id), byte(id >> 8), byte(len(raw))}, byte(min(n-len(raw), maxChunk/2)))
		got, err := d.do(ctx, doing, netStorage, cmdGetSDR, ask...)
		if err != nil {
			return nil, 0, err
		}
		if len(got) < 3 || len(raw)+len(got)-2 > maxSDRBytes {
			return nil, 0, d.short(doing)
		}
		next = binary.LittleEndian.Uint16(got)
		raw = append(raw, got[2:]...)
		if len(raw) >= sdrHeaderN {
			n = sdrHeaderN + int(raw[4])
		}
	}
	return raw, next, nil
}

// fru reads the inventory of the device that is the machine itself.
func (d *driver) fru(ctx context.Context) (*types.FRU, error) {
	const doing = "read the FRU inventory"
	got, err := d.do(ctx, doing, netStorage, cmdFRUInfo, 0)
	if err != nil {
		return nil, err
	}
	if len(got) < 3 {
		return nil, d.short(doing)
	}
	size := min(int(binary.LittleEndian.Uint16(got)), maxFRU)
	// Bit 0: the device is read by words of two bytes.
	unit := 1 + int(got[2]&1) // bytes that offsets and counts mean
	var (
		raw   []byte
		chunk = maxChunk
	)
	for len(raw) < size {
		at, n := len(raw)/unit, min(chunk, size-len(raw))/unit
		if n == 0 {
			break
		}
		got, err := d.do(ctx, doing, netStorage, cmdReadFRU, 0, byte(at), byte(at>>8), byte(n))
		if c := codeOf(err); (c == codeTooMuch || c == codeLength || c == codeFieldRange) && chunk > 8 {
			chunk /= 2
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(got) < 2 {
			break // fewer bytes than were promised
		}
		raw = append(raw, got[1:]...)
	}
	return decode(func() (*types.FRU, error) { return types.ParseFRU(raw) })
}
