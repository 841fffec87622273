package lab

import (
	"encoding/xml"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with testdata/name, or writes it there.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with: go test ./lab -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestDomainsOfTheThreeFirmwares(t *testing.T) {
	for _, s := range Specs(3) {
		t.Run(s.Name, func(t *testing.T) {
			got, err := domainXML(s, "/var/lib/slipway-lab", "slipway0", AccelTCG)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, s.Name+".golden.xml", got)
		})
	}
}

func TestADomainUnderKVMWithADiskThatBootsAndNoPXEv6(t *testing.T) {
	s := Specs(2)[1]
	s.Disk, s.NoPXEv6 = "/tmp/boots.raw", true
	got, err := domainXML(s, "/var/lib/slipway-lab", "slipway0", AccelKVM)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "kvm-disk.golden.xml", got)
}

func TestNoTextBreaksOutOfADomain(t *testing.T) {
	s := Specs(3)[2]
	s.Name, s.Serial, s.AssetTag = "a<b>&'c\"", "</entry>", "]]>"
	got, err := domainXML(s, "/tmp/a'b&<c>", "br'0", AccelTCG)
	if err != nil {
		t.Fatal(err)
	}
	var domain struct {
		Name   string `xml:"name"`
		Serial string `xml:"sysinfo>system>entry"`
		Log    []struct {
			File string `xml:"file,attr"`
		} `xml:"devices>serial>log"`
	}
	if err := xml.NewDecoder(strings.NewReader(got)).Decode(&domain); err != nil {
		t.Fatalf("not XML: %v\n%s", err, got)
	}
	if domain.Name != s.Domain() || domain.Log[0].File != "/tmp/a'b&<c>/"+s.Name+".console" {
		t.Errorf("name %q, console %q", domain.Name, domain.Log[0].File)
	}
}

func TestMachinesOfARackDifferAndRepeat(t *testing.T) {
	a, b := Specs(300), Specs(300)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("two racks of the same size differ:\n%s", diff)
	}
	seen := map[string]string{}
	firmware := map[inventory.Firmware]int{}
	for _, s := range a {
		for _, key := range []string{s.Name, string(s.MAC), s.UUID, s.Serial, s.AssetTag} {
			if other, ok := seen[key]; ok {
				t.Errorf("%s and %s share %s", s.Name, other, key)
			}
			seen[key] = s.Name
		}
		if m, err := inventory.ParseMAC(string(s.MAC)); err != nil || m != s.MAC {
			t.Errorf("%s: MAC %s: %v", s.Name, s.MAC, err)
		}
		if err := inventory.CheckName("host", s.Name); err != nil {
			t.Error(err)
		}
		firmware[s.Firmware]++
	}
	if diff := cmp.Diff(map[inventory.Firmware]int{inventory.BIOS: 100, inventory.UEFI: 100, inventory.UEFIHTTP: 100}, firmware); diff != "" {
		t.Error(diff)
	}
}
