package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// firstData returns the offset of the first byte of a disk image that is not zero, or -1. It skips holes with
// SEEK_DATA (lseek(2)): they read as zero.
func firstData(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	buf := make([]byte, 1<<20)
	for at := int64(0); ; {
		at, err = f.Seek(at, unix.SEEK_DATA) // what the file does not hold reads as zero
		if errors.Is(err, unix.ENXIO) {
			return -1, nil
		}
		if err != nil {
			return 0, err
		}
		n, err := f.ReadAt(buf, at)
		for i, b := range buf[:n] {
			if b != 0 {
				return at + int64(i), nil
			}
		}
		if errors.Is(err, io.EOF) {
			return -1, nil
		}
		if err != nil {
			return 0, err
		}
		at += int64(n)
	}
}

// isInstalled reports whether a disk image has the first two sectors of the lab's system: a boot sector and a GPT.
func isInstalled(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	b := make([]byte, 2*osSector)
	if _, err := f.ReadAt(b, 0); err != nil {
		return false, err
	}
	return b[510] == 0x55 && b[511] == 0xaa && string(b[osSector:osSector+8]) == "EFI PART", nil
}

// certify checks what is left of an installed machine: its disk reads as zero, and its host has one wipe certificate.
// It reads the disk itself, because the certificate is only the agent's word.
func (l *Lab) certify(ctx context.Context, m *Machine) (string, error) {
	at, err := firstData(m.DiskPath())
	if err != nil {
		return "", err
	}
	if at >= 0 {
		return "", fmt.Errorf("its disk is not wiped: byte %d is not zero", at)
	}
	p, err := l.API.Hosts.Reports(ctx, m.HostName())
	if err != nil {
		return "", err
	}
	for _, r := range p.Items {
		var certificates []inventory.WipeCertificate
		if r.Kind != inventory.ReportWipe {
			continue
		}
		if err := json.Unmarshal(r.Body, &certificates); err != nil {
			return "", fmt.Errorf("read wipe report: %w", err)
		}
		if len(certificates) != 1 || certificates[0].Error != "" || certificates[0].IsKept {
			return "", fmt.Errorf("its wipe report does not say that its disk is clean: %s", r.Body)
		}
		c := certificates[0]
		return fmt.Sprintf("%s wiped: %s, %s, %d MiB in %.1f s; its disk reads as zero", c.Disk.Name, c.Mode, c.Method, c.Bytes>>20, c.Seconds), nil
	}
	return "", errors.New("its host has no wipe report")
}
