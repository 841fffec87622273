package lab

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"strings"
	"text/template"

	"slipway.dev/slipway/inventory"
)

//go:embed domain.xml.tmpl
var domainText string

// Accel is how the processor of a machine runs.
type Accel string

// The ways to run a machine. AccelAuto is a question, answered by chooseAccel, and never reaches libvirt.
const (
	// The ways to run a processor. chooseAccel replaces AccelAuto before libvirt sees it.
	AccelAuto Accel = "auto"
	AccelKVM  Accel = "kvm"
	AccelTCG  Accel = "tcg"
)

// The firmware and emulator of Debian's packages ovmf and qemu-system-x86.
const (
	ovmfCode = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	ovmfVars = "/usr/share/OVMF/OVMF_VARS_4M.fd"
	emulator = "/usr/bin/qemu-system-x86_64"
)

// domainXML writes a machine as a libvirt domain that boots from the network first and from its disk second. UEFI
// machines get no option ROM, so that the network driver of their firmware boots.
func domainXML(s Spec, dir, bridge string, a Accel) (string, error) {
	f := s.files(dir)
	type paths struct{ Disk, NVRAM, Console string }
	in := struct {
		Spec
		Accel, Product, Manufacturer, Bridge, DiskFormat string
		OVMFCode, OVMFVars, Emulator                     string
		IsUEFI, IsHTTPBoot                               bool
		Files                                            paths
	}{
		Spec: s, Accel: "qemu", Product: "Lab " + strings.ToUpper(string(s.Firmware)), Manufacturer: Manufacturer,
		Bridge: bridge, DiskFormat: "qcow2", OVMFCode: ovmfCode, OVMFVars: ovmfVars, Emulator: emulator,
		IsUEFI: s.Firmware != inventory.BIOS, IsHTTPBoot: s.Firmware == inventory.UEFIHTTP,
		Files: paths{f.disk, f.nvram, f.console},
	}
	if a == AccelKVM {
		in.Accel = "kvm"
	}
	if s.isRaw() {
		in.DiskFormat = "raw"
	}
	t, err := template.New("domain").Funcs(template.FuncMap{"xml": xmlText}).Parse(domainText)
	if err != nil {
		return "", fmt.Errorf("parse domain template: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, in); err != nil {
		return "", fmt.Errorf("write domain of %s: %w", s.Name, err)
	}
	return b.String(), nil
}

func xmlText(s string) (string, error) {
	var b strings.Builder
	err := xml.EscapeText(&b, []byte(s))
	return b.String(), err
}
