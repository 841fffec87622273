package wipe

import (
	"bytes"
	"context"
	"strings"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/inventory"
)

// secure lets the disk erase itself, including blocks without an address. A disk that cannot is overwritten. The
// error names the obstacle when the disk has the command and refuses it: an overwrite is less than the admin asked
// for.
func (o *work) secure(ctx context.Context) error {
	o.total.Store(o.dev.Bytes)
	places := o.sampler()
	if err := o.plant(places); err != nil {
		return err
	}
	var method string
	var why, err error
	// watched must not take the silence of an erase for a disk that hangs: some disks need hours and report nothing.
	o.isErasing.Store(true)
	if strings.HasPrefix(o.disk.Name, "nvme") {
		method, err = o.eraseNVMe(ctx)
	} else if o.dev.IsBlock() {
		method, why = o.eraseATA()
	}
	o.isErasing.Store(false)
	if err != nil {
		// The certificate names what was begun: after a failed sanitize a disk may refuse reads until another one
		// succeeds.
		o.cert.Method = method
		return err
	}
	if method != "" {
		return o.checkErased(method, places)
	}
	if err := o.overwriteAll(ctx); err != nil {
		return err
	}
	if why != nil {
		return inventory.Errorf(inventory.Unavailable, "%s was overwritten only: %w", o.disk.Name, why)
	}
	return nil
}

// checkErased reads planted places back. After a cryptographic erase they read as noise, which is as good as zero.
// Only the planted pattern must be gone.
func (o *work) checkErased(method string, places []int64) error {
	o.cert.Method, o.cert.Bytes = method, o.dev.Bytes
	o.bytes.Store(o.dev.Bytes)
	planted := pattern()
	isZero := true
	isClean := func(p []byte) bool {
		isZero = isZero && disk.IsZero(p)
		return !bytes.Equal(p, planted[:len(p)])
	}
	if err := o.check(places, isClean, "unchanged"); err != nil {
		return err
	}
	// Noise has no signature. One that is left means that the erase did not reach it.
	if left := disk.Contents(o.dev, o.dev.Bytes); len(left) > 0 {
		return inventory.Errorf(inventory.Unavailable, "%s still shows %s after it erased itself", o.disk.Name, left[0].Kind)
	}
	o.isZero = isZero
	return nil
}
