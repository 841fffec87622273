package simulate

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestMachinesBootFromDnsmasq proves the machines against a server that is not ours: its packets, its TFTP, and files
// over the kernel's HTTP, in two namespaces.
func TestMachinesBootFromDnsmasq(t *testing.T) {
	if os.Getenv("SLIPWAY_NET") != "1" {
		t.Skip("needs root and makes network namespaces; run: make test-net")
	}
	if _, err := exec.LookPath("dnsmasq"); err != nil {
		t.Skip("needs dnsmasq; run: apt-get install dnsmasq-base")
	}
	n, err := NewNet(fmt.Sprintf("slipway-simtest-%d", os.Getpid()), netip.MustParsePrefix("10.77.0.1/16"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	dir := t.TempDir()
	loader := append([]byte("MZ"), bytes.Repeat([]byte("x"), 200_001)...)
	for _, name := range []string{"snponly.efi", "undionly.kpxe"} {
		if err := os.WriteFile(filepath.Join(dir, name), loader, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	toy := &toyServer{base: "http://10.77.0.1", loader: loader}
	toy.script = fmt.Sprintf("#!ipxe\nkernel %s/artefact/%s/vmlinuz slipway.report=%s/report\nboot\n", toy.base, hexOf(toyKernel), toy.base)
	web := &http.Server{Handler: http.HandlerFunc(toy.http), ReadHeaderTimeout: time.Minute}
	if err := InNamespace(n.Server, func() error {
		l, err := net.Listen("tcp4", "10.77.0.1:80")
		if err == nil {
			go func() { _ = web.Serve(l) }()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = web.Close() })
	dhcp := n.Command(t.Context(), n.Server, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root",
		"--pid-file=", "--interface=vs", "--bind-interfaces", "--dhcp-authoritative", "--no-ping", "--dhcp-range=10.77.1.0,10.77.9.255,255.255.0.0,1h",
		"--dhcp-leasefile="+filepath.Join(dir, "leases"), "--enable-tftp", "--tftp-root="+dir, "--tftp-max=500",
		"--dhcp-match=set:ipxe,175", "--dhcp-option=encap:175,176,1b", "--dhcp-match=set:efi,option:client-arch,7",
		"--dhcp-vendorclass=set:http,HTTPClient", "--dhcp-option-force=tag:http,60,HTTPClient",
		"--dhcp-boot=tag:ipxe,http://10.77.0.1/script", "--dhcp-boot=tag:!ipxe,tag:http,http://10.77.0.1/snponly.efi",
		"--dhcp-boot=tag:!ipxe,tag:efi,snponly.efi", "--dhcp-boot=tag:!ipxe,tag:!efi,tag:!http,undionly.kpxe")
	if err := dhcp.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dhcp.Process.Kill(); _ = dhcp.Wait() })
	cfg := toyConfig(40)
	cfg.Interface, cfg.Namespace, cfg.Timeout = n.ClientIf, n.Client, time.Minute
	cfg.SecondClient = true
	cfg.Faults = Faults{FaultDrop: .002, FaultDuplicate: .05, FaultTFTPAbort: .05}
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !r.IsGood() || toy.reports != 40 {
		t.Fatalf("%d reports; %s", toy.reports, summaryOf(t, r))
	}
	t.Log(summaryOf(t, r))
}
