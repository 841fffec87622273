package ipmi

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/bougou/go-ipmi/pkg/types"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

const (
	readLog    = "read the event log"
	readLogFor = 45 * time.Second
)

// Log implements bmc.LogReader.
func (d *driver) Log(ctx context.Context, limit int) ([]bmc.LogEntry, error) {
	if limit <= 0 {
		return nil, nil
	}
	// Record 0xFFFF is the newest one, and 0 the oldest (IPMI 2.0, 31.5).
	raw, _, err := d.entry(ctx, lastRecord)
	if codeOf(err) == codeNotPresent {
		return nil, nil // empty
	}
	if err != nil {
		return nil, err
	}
	total, err := d.entryCount(ctx)
	if err != nil {
		return nil, err
	}
	// Records are linked forward only. Most controllers number them one by one: then only the last ones are read. Where that
	// gives too few, all are read, and the newest kept.
	// Reading 10,000 entries takes minutes at two packets each, and the admin wants the last twenty.
	start := uint16(0)
	if last := int(binary.LittleEndian.Uint16(raw)); last > limit {
		start = uint16(last - limit + 1)
	}
	all, n, err := d.entries(ctx, start, limit)
	// The guess was wrong: the log was cleared in between, or its records are not numbered one by one.
	if start != 0 && (codeOf(err) == codeNotPresent || err == nil && len(all) < min(limit, total)) {
		all, n, err = d.entries(ctx, 0, limit)
	}
	if err != nil {
		return nil, err
	}
	if total = max(total, n); total > len(all) {
		bmc.Omit(ctx, "%d of %d entries of the log are not shown: older ones", total-len(all), total)
	}
	slices.Reverse(all)
	return all, nil
}

// entryCount is how many entries the log has; 0 when the controller does not tell.
func (d *driver) entryCount(ctx context.Context) (int, error) {
	got, err := d.do(ctx, readLog, netStorage, cmdSELInfo)
	if codeOf(err) != 0 || err == nil && len(got) < 3 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return int(binary.LittleEndian.Uint16(got[1:])), nil
}

// entries reads from a record to the end, and keeps the last ones; n is how many it read.
func (d *driver) entries(ctx context.Context, id uint16, limit int) (all []bmc.LogEntry, n int, err error) {
	end := time.Now().Add(readLogFor)
	for seen := map[uint16]bool{}; id != lastRecord && !seen[id]; {
		if time.Now().After(end) {
			bmc.Omit(ctx, "the log is too long to be read to its end: newer entries may be missing; clear the log")
			break
		}
		seen[id] = true
		raw, next, err := d.entry(ctx, id)
		if codeOf(err) == codeNotPresent && n > 0 {
			break // cleared meanwhile
		}
		if err != nil {
			return nil, 0, err
		}
		n++
		if all = append(all, logEntry(raw)); len(all) > limit {
			all = all[1:]
		}
		id = next
	}
	return all, n, nil
}

func (d *driver) entry(ctx context.Context, id uint16) (raw []byte, next uint16, err error) {
	// A whole record needs no reservation; 0xFF asks for all of its bytes.
	got, err := d.do(ctx, readLog, netStorage, cmdGetSEL, 0, 0, byte(id), byte(id>>8), 0, 0xff)
	if err != nil {
		return nil, 0, err
	}
	if len(got) != 2+selRecordN {
		return nil, 0, d.short(readLog)
	}
	return got[2:], binary.LittleEndian.Uint16(got), nil
}

// logEntry puts a record of the event log into words.
func logEntry(raw []byte) bmc.LogEntry {
	e := bmc.LogEntry{ID: fmt.Sprintf("%d", binary.LittleEndian.Uint16(raw)), Severity: "info"}
	if kind := raw[2]; kind != 0x02 {
		e.Message = fmt.Sprintf("record of the vendor's own type 0x%02x: %x", kind, raw[3:selRecordN])
		// Of the vendors' own types, only these have a time.
		if kind >= 0xc0 && kind <= 0xdf {
			e.At = logTime(raw)
		}
		return e
	}
	e.At = logTime(raw)
	e, err := decode(func() (bmc.LogEntry, error) { return describe(e, raw) })
	if err != nil || e.Message == "" {
		e.Message = fmt.Sprintf("event %x of sensor %d", raw[12:selRecordN], raw[11])
	}
	return e
}

func describe(e bmc.LogEntry, raw []byte) (bmc.LogEntry, error) {
	r, err := types.ParseSEL(raw)
	if err != nil || r.Standard == nil {
		return e, err
	}
	s := r.Standard
	e.Message = inventory.Clean(fmt.Sprintf("%s (sensor %d): %s", s.SensorType, byte(s.SensorNumber), s.EventString()), 240)
	// The highest bit of the event type says that the condition has ended.
	if raw[12]&0x80 != 0 {
		e.Message += ": no more"
		return e, nil
	}
	switch s.EventSeverity() {
	case types.EventSeverityCritical, types.EventSeverityDegraded:
		e.Severity = "critical"
	case types.EventSeverityWarning:
		e.Severity = "warning"
	}
	return e, nil
}

// logTime reads the seconds since 1970. Below 0x20000000 they count from the start of the controller, and 0xFFFFFFFF means
// that it had no clock (IPMI 2.0, 37).
func logTime(raw []byte) string {
	s := binary.LittleEndian.Uint32(raw[3:])
	if s <= 0x20000000 || s == 0xffffffff {
		return ""
	}
	return time.Unix(int64(s), 0).UTC().Format(time.RFC3339)
}

// ClearLog implements bmc.LogReader, and waits until the log is empty. Clearing takes a reservation, so that it fails
// when another session changes the log meanwhile.
func (d *driver) ClearLog(ctx context.Context) error {
	const doing = "clear the event log"
	reservation, err := d.reserve(ctx, doing, cmdReserveSEL)
	if err != nil {
		return err
	}
	const start, ask = 0xaa, 0x00
	// The letters CLR are a part of the command, against a clear by mistake. The answer is 0 while it works, 1 at the
	// end.
	for _, step := range []byte{start, ask, ask, ask, ask, ask, ask, ask, ask} {
		got, err := d.do(ctx, doing, netStorage, cmdClearSEL, reservation[0], reservation[1], 'C', 'L', 'R', step)
		if err != nil {
			return err
		}
		if len(got) > 0 && got[0]&0x0f == 1 {
			return nil
		}
		if err := sleep.For(ctx, d.busyWait); err != nil {
			return d.explain(err)
		}
	}
	return inventory.Errorf(inventory.Unavailable, "the IPMI controller at %s is still clearing its event log", d.address)
}
