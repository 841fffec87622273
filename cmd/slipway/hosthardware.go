package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"slipway.dev/slipway/acceptance"
	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
)

type hostHardware struct {
	Host string `arg:""`
	Diff bool   `help:"Show what has changed since the inspection before."`
	N    int    `help:"Number of the inspection, from 1; 0 is the newest." placeholder:"N"`
}

// Run shows what a host is made of.
func (c *hostHardware) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	i, err := api.Hosts.Hardware(s.ctx, c.Host, c.N)
	if err != nil {
		return err
	}
	if c.Diff {
		if i.Changes == nil {
			i.Changes = []inventory.HardwareChange{}
		}
		return s.show(i.Changes, func(t *tableWriter) {
			if len(i.Changes) == 0 {
				t.text("nothing has changed")
				return
			}
			t.row("CHANGE", "WHAT", "FROM", "TO")
			for _, x := range i.Changes {
				t.row(x.Kind, x.What, x.Old, x.New)
			}
		})
	}
	return s.show(i, func(t *tableWriter) { hardwareTable(t, &i) })
}

// hardwareTable writes an inspection for people.
func hardwareTable(t *tableWriter, i *inventory.Inspection) {
	hw := &i.Hardware
	join := func(parts ...string) string { return strings.Join(strings.Fields(strings.Join(parts, " ")), " ") }
	t.field("inspection", fmt.Sprintf("%d, %s, by %s", i.N, timeText(i.At), hw.Source))
	t.field("in short", hardware.Summary(hw))
	t.field("machine", join(hw.System.Manufacturer, hw.System.Product, hw.System.Version))
	t.field("serial", hw.System.Serial)
	t.field("uuid", hw.System.UUID)
	t.field("board", join(hw.System.BoardProduct, hw.System.BoardSerial))
	secure := ""
	if hw.Firmware.IsSecureBoot {
		secure = "secure boot"
	}
	t.field("firmware", join(string(hw.Firmware.Kind), hw.Firmware.Vendor, hw.Firmware.Version, hw.Firmware.ReleasedAt, secure))
	t.field("cpu", fmt.Sprintf("%d × %s, %d cores, %d threads, %s", hw.CPU.Sockets, hardware.ShortCPU(hw.CPU.Model), hw.CPU.Cores, hw.CPU.Threads, hw.CPU.Arch))
	t.field("memory", hardware.Bytes(hardware.Memory(nil, hw)))
	for _, d := range hw.DIMMs {
		t.field("dimm", join(d.Slot, hardware.Bytes(d.SizeBytes), d.Type, d.Manufacturer, d.Part, d.Serial))
	}
	for _, d := range hw.Disks {
		t.field("disk", join(d.Name, hardware.Bytes(d.SizeBytes), d.Transport, d.Vendor, d.Model)+prefixed(", serial ", d.Serial)+prefixed(", wwn ", d.WWN)+
			prefixed(", firmware ", d.Firmware)+prefixed(", ", d.Contents)+prefixed(", health ", d.Health))
	}
	for _, d := range hw.MissingDisks {
		t.field("missing disk", join(d.Name, hardware.Bytes(d.SizeBytes), d.Model)+prefixed(", serial ", d.Serial)+prefixed(", wwn ", d.WWN))
	}
	for _, p := range hw.Ports {
		link := "no link"
		if p.HasLink {
			link = hardware.Speed(p.SpeedMbps)
		}
		text := join(p.Name, string(p.MAC), p.Driver) + ", " + link
		if p.Neighbour != nil {
			text += ", at " + hardware.NeighbourName(p.Neighbour)
		}
		t.field("port", text)
	}
	for _, a := range hw.Accelerators {
		t.field("accelerator", join(a.Address, a.ID, a.Vendor, a.Model))
	}
	for _, d := range hw.PCI {
		if d.IsMissingDriver {
			t.field("no driver for", join(d.Address, d.ID, d.Vendor, d.Model))
		}
	}
	if hw.TPM != nil {
		t.field("tpm", join(hw.TPM.Version, hw.TPM.Vendor))
	}
	if hw.BMC != nil {
		t.field("bmc", join(hw.BMC.Address, string(hw.BMC.MAC), hw.BMC.Vendor, hw.BMC.Firmware))
	}
	t.field("golden", i.Golden)
	for _, f := range i.Faults {
		t.field("fault", f)
	}
	if n := len(i.Changes); n > 0 {
		t.field("changes", fmt.Sprintf("%d; --diff shows them", n))
	}
}

type hostReport struct {
	Host string `arg:""`
	HTML string `name:"html" help:"Write it as a page that can be printed; - is standard output." placeholder:"FILE"`
}

// Run shows a host's acceptance sheet.
func (c *hostReport) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	if c.HTML == "" {
		raw, err := api.Hosts.Report(s.ctx, c.Host)
		if err != nil {
			return err
		}
		var sheet acceptance.Sheet
		if err := json.Unmarshal(raw, &sheet); err != nil {
			return fmt.Errorf("read acceptance sheet: %w", err)
		}
		return s.show(raw, func(t *tableWriter) { sheetTable(t, &sheet) })
	}
	var page bytes.Buffer
	if err := api.Hosts.ReportPage(s.ctx, c.Host, &page); err != nil {
		return err
	}
	if c.HTML == "-" {
		_, err := page.WriteTo(s.out)
		return err
	}
	if err := os.WriteFile(c.HTML, page.Bytes(), 0o644); err != nil {
		return &inventory.Error{Kind: inventory.Invalid, Msg: "cannot write the page: " + err.Error()}
	}
	s.say("written to %s", c.HTML)
	return nil
}

// sheetTable sums up an acceptance sheet; the page has the rest.
func sheetTable(t *tableWriter, a *acceptance.Sheet) {
	t.field("host", a.Host.Name+", "+string(a.Host.State))
	t.field("accepted", yesNo(a.IsAccepted))
	for _, r := range a.Reasons {
		t.field("because", r)
	}
	for _, n := range a.Notes {
		t.field("note", n)
	}
	t.field("hardware", a.Summary)
	if i := a.Inspection; i != nil {
		t.field("inspection", fmt.Sprintf("%d, %s", i.N, timeText(i.At)))
		for _, f := range i.Faults {
			t.field("fault", f)
		}
	}
	if b := a.BurnIn; b != nil {
		t.field("burn-in", fmt.Sprintf("%s, for %s: %s", timeText(b.At), inventory.Duration(time.Duration(b.ForSeconds)*time.Second), passed(b.IsPassed)))
		for _, x := range b.Tests {
			text := x.Name + ": " + passed(x.Passed) + prefixed(", ", x.Detail)
			if x.Rate > 0 {
				text += fmt.Sprintf(", %.4g %s", x.Rate, x.Unit)
			}
			t.field("test", text)
		}
	}
	for _, d := range append(append([]acceptance.Disk{}, a.Disks...), a.Departed...) {
		text := strings.TrimSpace(d.Disk.Name+" "+d.Disk.Serial) + ": no wipe is known"
		if w := d.Wipe; w != nil {
			text = fmt.Sprintf("%s %s: %s by %s, %s", d.Disk.Name, d.Disk.Serial, w.Mode, w.Method, timeText(w.At)) + prefixed(", ", w.Error)
		}
		t.field("disk", text)
	}
	for _, x := range a.Installs {
		t.field("installed", strings.TrimSpace(timeText(x.At)+" "+x.Machine))
	}
	for _, x := range a.Issues {
		t.field("issue", x.Cause)
	}
	t.field("made", timeText(a.MadeAt))
}

func passed(is bool) string {
	if is {
		return "passed"
	}
	return "failed"
}
