package kexec

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"slipway.dev/slipway/agent/wire"
)

// TestAnotherKernelStarts ends this machine: the second kernel says the word on the console.
func TestAnotherKernelStarts(t *testing.T) {
	folder := os.Getenv("SLIPWAY_KEXEC")
	if folder == "" {
		t.Skip("ends the machine it runs on: boot one with QEMU, name the folder with vmlinuz and initrd in SLIPWAY_KEXEC, and run this test there")
	}
	srv := httptest.NewServer(http.FileServer(http.Dir(folder)))
	defer srv.Close()
	task := wire.Task{Kexec: &wire.KexecTask{Kernel: srv.URL + "/vmlinuz", Initrd: []string{srv.URL + "/initrd"}, Args: []string{"console=ttyS0", "slipway-second-kernel"}}}
	if _, err := New(Config{}).Handler(t.Context(), task, say); err != nil {
		t.Fatal(err)
	}
	t.Log("jumping")
	t.Fatal(Start())
}
