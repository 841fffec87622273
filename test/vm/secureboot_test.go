package vm

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// Firmware with Microsoft's keys enrolled and Secure Boot on.
const (
	secureCode = "/usr/share/OVMF/OVMF_CODE_4M.ms.fd"
	secureVars = "/usr/share/OVMF/OVMF_VARS_4M.ms.fd"
)

// TestSecureBoot boots one machine with Secure Boot on: nothing is known of it, so it is sent iPXE, which its firmware
// refuses; then the chain of signed loaders, which tells what is wrong with an unsigned kernel and starts a signed one.
func TestSecureBoot(t *testing.T) {
	s := newStand(t)
	kernel := filepath.Join(installer, "linux")
	args := []string{"console=ttyS0", "rdinit=/slipway-init", "slipway.report=${report}", "slipway.name=${hostname}"}
	s.image("signed", inventory.X8664, args, kernel, filepath.Join(installer, "initrd.gz"), s.labInit())
	s.image("unsigned", inventory.X8664, args, s.unsigned(kernel), s.labInit())
	s.host("unsigned")
	h, err := s.api.Hosts.Get(t.Context(), string(standMAC))
	if err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	for i := range 2 { // its firmware refuses iPXE, twice
		cmd, _ := s.qemu("qemu-system-x86_64", s.ovmf(secureCode, secureVars)...)
		s.until("iPXE is sent", time.Minute, func(ctx context.Context) bool {
			page, err := s.api.Sessions.List(ctx, client.Query{Host: string(standMAC), Limit: 5})
			n := 0
			for _, b := range page.Items {
				if b.Step == inventory.EventLoaderSent {
					n++
				}
			}
			return err == nil && n > i
		})
		s.stop(cmd)
	}
	t.Logf("iPXE refused twice after %.1f s", time.Since(began).Seconds())

	// The next boot's first packet ends the second; what it is offered may still be iPXE.
	cmd, _ := s.qemu("qemu-system-x86_64", s.ovmf(secureCode, secureVars)...)
	s.event(inventory.EventHostChanged, "from now on it gets the signed shimx64.efi", time.Minute)
	s.stop(cmd)

	_, console := s.qemu("qemu-system-x86_64", s.ovmf(secureCode, secureVars)...)
	s.says(console, "nobody signed the kernel of image unsigned", 2*time.Minute)
	s.event(inventory.EventBootDecided, "Secure Boot is on, and nobody signed the kernel", 10*time.Second)
	if h, err = s.api.Hosts.Get(t.Context(), string(standMAC)); err != nil || h.Facts[inventory.FactSecureBoot] != pxe.SecureBootOn || h.Serial != "STAND-1" {
		t.Errorf("what GRUB said: facts %v, serial %q, %v", h.Facts, h.Serial, err)
	}
	s.until("an issue says so", 10*time.Second, func(ctx context.Context) bool {
		page, err := s.api.Issues.List(ctx, client.Query{})
		for _, i := range page.Items {
			if err == nil && i.Type == inventory.IssueBootRefused && len(i.HostIDs) == 1 && i.HostIDs[0] == h.ID {
				return true
			}
		}
		return false
	})
	t.Logf("unsigned kernel refused after %.1f s", time.Since(began).Seconds())

	profile := "signed"
	if _, err := s.api.Hosts.Patch(t.Context(), string(h.ID), wire.HostPatch{Profile: &profile}); err != nil {
		t.Fatal(explain(err))
	}
	s.event(inventory.EventReported, "up: Linux", 4*time.Minute) // the machine asks again by itself
	s.says(console, "is up: Linux 6.1.", 10*time.Second)
	t.Logf("signed kernel up after %.1f s", time.Since(began).Seconds())
}
