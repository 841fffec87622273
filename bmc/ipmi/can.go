package ipmi

import "context"

// Can asks the controller what it can do: IPMI makes most features optional. A feature counts as present unless the
// controller clearly says no.
func (d *driver) Can(ctx context.Context) ([]string, error) {
	const doing = "ask what the controller can do"
	id, err := d.do(ctx, doing, netApp, cmdDeviceID)
	if err := d.fatal(ctx, err); err != nil {
		return nil, err
	}
	can := []string{"inventory", "reset"}
	support := byte(0xff)
	if len(id) > 5 {
		support = id[5] // IPMI 2.0, table 20-2: additional device support
	}
	const sensors, log = 0x01, 0x04
	if support&sensors != 0 {
		can = append(can, "sensors")
	}
	if support&log != 0 {
		can = append(can, "log")
	}
	for _, q := range []struct {
		name  string
		netFn byte
		cmd   byte
		data  []byte
		isNo  func(got []byte) bool
	}{
		{"boot", netChassis, cmdGetBoot, []byte{paramFlags, 0, 0}, nil},
		{"users", netApp, cmdGetUserAccess, []byte{currentChannel, 1}, nil},
		{"console", netApp, cmdPayloadSupport, []byte{currentChannel}, func(got []byte) bool { return len(got) > 0 && got[0]&0x02 == 0 }},
	} {
		got, err := d.do(ctx, doing, q.netFn, q.cmd, q.data...)
		if err := d.fatal(ctx, err); err != nil {
			return nil, err
		}
		c := codeOf(err)
		if c == codeUnknown || c == codeUnknownHere && q.name != "console" || err == nil && q.isNo != nil && q.isNo(got) {
			continue
		}
		can = append(can, q.name)
	}
	return append(can, "locate"), nil
}

// ResetController restarts the controller itself. Many do so at once and never answer, so that an Unavailable error
// does not mean failure. The machine keeps its power.
func (d *driver) ResetController(ctx context.Context) error {
	_, err := d.do(ctx, "restart the controller", netApp, cmdColdReset)
	return err
}
