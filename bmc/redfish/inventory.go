package redfish

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"math"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/sigdb"
)

// Inventory reads the parts of the machine. It leaves out parts that the controller lists and cannot show. Only an
// error that ends every call ends this one. The caller sets CollectedAt.
func (d *driver) Inventory(ctx context.Context) (_ bmc.Inventory, err error) {
	defer d.safe(&err)
	s, err := d.system(ctx)
	if err != nil {
		return bmc.Inventory{}, err
	}
	id, err := d.identify(ctx, s)
	if err != nil {
		return bmc.Inventory{}, err
	}
	h := inventory.Hardware{
		Source: "bmc",
		System: inventory.System{
			Manufacturer: clean(s.Manufacturer), Product: clean(s.Model), Version: clean(s.SKU), Serial: clean(s.SerialNumber),
			UUID: lower(s.UUID), AssetTag: clean(s.AssetTag),
		},
		Firmware: inventory.FirmwareInfo{Version: clean(s.BiosVersion), Kind: modeOf(s.Boot.Mode)},
		CPU: inventory.CPU{
			Model: clean(s.ProcessorSummary.Model), Sockets: bounded(s.ProcessorSummary.Count, 1<<10),
			Cores: bounded(s.ProcessorSummary.CoreCount, 1<<16), Threads: bounded(s.ProcessorSummary.LogicalProcessorCount, 1<<16),
		},
		MemoryBytes: gib(s.MemorySummary.TotalSystemMemoryGiB),
		BMC:         &inventory.BMCFacts{Firmware: clean(id.firmware), Vendor: clean(id.vendor)},
	}
	// InterfaceType is TPM1_2, TPM2_0, or TCM1_0 for the Chinese standard, which is none.
	for _, tpm := range s.TrustedModules {
		if version, ok := strings.CutPrefix(strings.Replace(tpm.InterfaceType, "_", ".", 1), "TPM"); ok {
			h.TPM = &inventory.TPM{Version: clean(version)}
		}
	}
	// In the order of their worth: the context may end before the last part of a slow controller was read.
	for _, part := range []struct {
		name string
		read func(context.Context, *system, *inventory.Hardware) error
	}{
		{"processors", d.addProcessors},
		{"memory", d.addMemory},
		{"disks", d.addDisks},
		{"network ports", d.addPorts},
		{"Secure Boot", d.addSecureBoot},
		{"the controller's own port", d.addManagerPort},
	} {
		// A part may be incomplete and be kept: what it added before its error stays in h.
		if err := d.omit(ctx, part.name, part.read(ctx, s, &h)); err != nil {
			return bmc.Inventory{}, err
		}
	}
	return bmc.Inventory{Hardware: h, Vendor: clean(id.vendor), Model: clean(id.model), Firmware: clean(id.firmware)}, nil
}

// each calls fn with every document of a collection that can be read. It calls fn for those that it got even when it returns an
// error in the end: half a list of disks is worth more than none.
func each[T any](ctx context.Context, d *driver, ref string, fn func(*T)) error {
	docs, err := d.members(ctx, ref)
	for _, doc := range docs {
		v := new(T)
		if decode(doc, v) == nil {
			fn(v)
		}
	}
	return err
}

type processor struct {
	ProcessorType         string
	Manufacturer          string
	Model                 string
	ProcessorArchitecture string
	InstructionSet        string
	MaxSpeedMHz           number
	TotalCores            number
	TotalThreads          number
	Status                status
}

// addProcessors replaces the summary of the system, which has no cores in older schemas.
func (d *driver) addProcessors(ctx context.Context, s *system, h *inventory.Hardware) error {
	var sum inventory.CPU
	err := each(ctx, d, s.Processors.ID, func(p *processor) {
		// Empty sockets are members of the collection, and so are accelerators.
		if p.Status.State == "Absent" || p.ProcessorType != "" && p.ProcessorType != "CPU" {
			if p.ProcessorType == "GPU" && p.Status.State != "Absent" {
				h.Accelerators = append(h.Accelerators, inventory.PCIDevice{Vendor: clean(p.Manufacturer), Model: clean(p.Model)})
			}
			return
		}
		sum.Sockets++
		sum.Cores += bounded(p.TotalCores, 1<<16)
		sum.Threads += bounded(p.TotalThreads, 1<<16)
		// Sockets hold the same model on every supported board; the last one read names it.
		sum.Model, sum.Vendor, sum.MHz = clean(p.Model), clean(p.Manufacturer), bounded(p.MaxSpeedMHz, 1<<20)
		switch arch := p.ProcessorArchitecture + " " + p.InstructionSet; {
		// ProcessorArchitecture says x86 for 32 and 64 bits, and not all controllers fill InstructionSet. Every server is
		// 64-bit.
		case strings.Contains(arch, "x86-64"), strings.Contains(arch, "x86"):
			sum.Arch = inventory.X8664
		case strings.Contains(arch, "ARM"):
			sum.Arch = inventory.ARM64
		}
	})
	if sum.Sockets > 0 {
		// A controller that lists processors without their cores may still count the cores in its summary.
		sum.Cores = cmp.Or(sum.Cores, h.CPU.Cores)
		sum.Threads = cmp.Or(sum.Threads, h.CPU.Threads)
		h.CPU = sum
	}
	return err
}

// addMemory keeps slots as the controller names them: an admin looks for the same name on the board.
func (d *driver) addMemory(ctx context.Context, s *system, h *inventory.Hardware) error {
	var total int64
	err := each(ctx, d, s.Memory.ID, func(m *struct {
		ID                string `json:"Id"`
		Name              string
		DeviceLocator     string
		CapacityMiB       number
		MemoryDeviceType  string
		OperatingSpeedMhz number
		Manufacturer      string
		PartNumber        string
		SerialNumber      string
		Status            status
	},
	) {
		// Empty slots are members, too.
		if m.CapacityMiB <= 0 || m.Status.State == "Absent" {
			return
		}
		slot := cmp.Or(m.DeviceLocator, m.ID)
		size := gib(m.CapacityMiB / 1024)
		total += size
		h.DIMMs = append(h.DIMMs, inventory.DIMM{
			Slot: clean(slot), SizeBytes: size, Type: clean(m.MemoryDeviceType), SpeedMTs: bounded(m.OperatingSpeedMhz, 1<<20),
			Manufacturer: clean(m.Manufacturer), Part: clean(m.PartNumber), Serial: clean(m.SerialNumber),
		})
	})
	// The summary counts first: controllers list only modules that they could read.
	h.MemoryBytes = cmp.Or(h.MemoryBytes, total)
	return err
}

// addDisks takes a request for each disk. $expand brings the storage controllers only, whose disks are links in them.
func (d *driver) addDisks(ctx context.Context, s *system, h *inventory.Hardware) error {
	var drives []string
	err := each(ctx, d, s.Storage.ID, func(c *struct{ Drives []link }) {
		for _, l := range c.Drives {
			// Drives hang on storage controllers, and each is a document of its own.
			drives = append(drives, l.ID)
		}
	})
	if err != nil {
		return err
	}
	if len(drives) > maxMembers {
		bmc.Omit(ctx, "disks: %d of %d were not read", len(drives)-maxMembers, len(drives))
	}
	for _, ref := range drives[:min(len(drives), maxMembers)] {
		var v disk
		err := d.read(ctx, ref, &v)
		if fatal := d.omit(ctx, ref, err); fatal != nil {
			return fatal
		}
		if err == nil && v.Status.State != "Absent" {
			h.Disks = append(h.Disks, v.facts())
		}
	}
	return nil
}

type disk struct {
	ID             string `json:"Id"`
	Name           string
	Manufacturer   string
	Model          string
	SerialNumber   string
	Revision       string
	Protocol       string
	MediaType      string
	CapacityBytes  number
	BlockSizeBytes number
	Identifiers    []struct{ DurableName, DurableNameFormat string }
	Status         status
}

// facts has no name such as sda: the controller does not know what Linux calls a disk. Serial and WWN tie both together.
func (v *disk) facts() inventory.Disk {
	name := cmp.Or(v.Name, v.ID)
	f := inventory.Disk{
		Name: clean(name), Vendor: clean(v.Manufacturer), Model: clean(v.Model), Serial: clean(v.SerialNumber), Firmware: clean(v.Revision),
		Transport: strings.ToLower(clean(v.Protocol)), SizeBytes: int64(bounded(v.CapacityBytes, math.MaxInt64>>8)), SectorBytes: bounded(v.BlockSizeBytes, 1<<20),
		IsRotational: v.MediaType == "HDD", Health: strings.ToLower(clean(v.Status.Health)),
	}
	for _, id := range v.Identifiers {
		// Of the formats, only these two are world-wide names.
		if id.DurableNameFormat == "NAA" || id.DurableNameFormat == "EUI" {
			f.WWN = strings.ToLower(clean(id.DurableName))
		}
	}
	return f
}

type port struct {
	ID                  string `json:"Id"`
	Name                string
	MACAddress          string
	PermanentMACAddress string
	SpeedMbps           number
	LinkStatus          string
	MTUSize             number
	IPv4Addresses       []struct{ Address, AddressOrigin string }
	VLAN                struct {
		VLANEnable bool
		VLANID     int `json:"VLANId"`
	}
}

func (p *port) mac() inventory.MAC {
	// The permanent address first: an operating system may have set the other. Hosts are recognised by their MACs, so that a
	// bond's address would join two of them.
	for _, text := range []string{p.PermanentMACAddress, p.MACAddress} {
		if m, err := inventory.ParseMAC(text); err == nil {
			return m
		}
	}
	return ""
}

func (d *driver) addPorts(ctx context.Context, s *system, h *inventory.Hardware) error {
	// The collection also has virtual ports of the host's system, bridges and bonds. Those without a MAC are no hardware.
	return each(ctx, d, s.EthernetInterfaces.ID, func(p *port) {
		if p.mac() == "" {
			return
		}
		name := cmp.Or(p.ID, p.Name)
		h.Ports = append(h.Ports, inventory.Port{
			Name: clean(name), MAC: p.mac(), SpeedMbps: bounded(p.SpeedMbps, 1<<24), HasLink: p.LinkStatus == "LinkUp", MTU: bounded(p.MTUSize, 1<<16),
		})
	})
}

// addSecureBoot tells whether a boot loader signed by others can start: the profile of a host may need a certificate.
func (d *driver) addSecureBoot(ctx context.Context, s *system, h *inventory.Hardware) error {
	if s.SecureBoot.ID == "" {
		return nil
	}
	var doc struct {
		SecureBootCurrentBoot string
		SecureBootDatabases   link
	}
	if err := d.read(ctx, s.SecureBoot.ID, &doc); err != nil {
		return err
	}
	// What the last boot ran with, and not what is set for the next one.
	h.Firmware.IsSecureBoot = doc.SecureBootCurrentBoot == "Enabled"
	if doc.SecureBootDatabases.ID == "" {
		return nil
	}
	return d.addTrusted(ctx, doc.SecureBootDatabases.ID, h)
}

// addTrusted reads the certificates that the firmware trusts (database db), less those that it refuses (dbx).
func (d *driver) addTrusted(ctx context.Context, databases string, h *inventory.Hardware) error {
	refs := map[string]string{}
	if err := each(ctx, d, databases, func(v *struct {
		ID           string `json:"Id"`
		DatabaseID   string `json:"DatabaseId"`
		Certificates link
	},
	) {
		refs[strings.ToLower(cmp.Or(v.DatabaseID, v.ID))] = v.Certificates.ID
	}); err != nil || refs["db"] == "" {
		return err
	}
	read := func(ref string) (all []inventory.Certificate, err error) {
		if ref == "" {
			return nil, nil
		}
		err = each(ctx, d, ref, func(v *certificate) {
			if c, ok := v.inventory(); ok && len(all) < maxCertificates {
				all = append(all, c)
			}
		})
		return all, err
	}
	trusted, err := read(refs["db"])
	if err != nil {
		return err
	}
	revoked, err := read(refs["dbx"])
	if err != nil { // some controllers list the hashes of dbx and no certificates
		revoked = nil
	}
	for _, c := range trusted {
		// The firmware refuses what dbx names, whatever db says (UEFI 2.10, "Authorization Process").
		if !slices.Contains(revoked, c) {
			h.Firmware.SecureBootDB = append(h.Firmware.SecureBootDB, c)
		}
	}
	return nil
}

// maxCertificates bounds what is read of a database; firmware has five or so.
const maxCertificates = 64

type certificate struct {
	CertificateString string // PEM, most often
	Subject           struct{ CommonName string }
	ValidNotAfter     string
}

// inventory describes a certificate: by itself where the controller gives it, else by what the controller says of it. It reports
// false for one without a name, such as a hash: a list of hashes tells an admin nothing.
func (c *certificate) inventory() (inventory.Certificate, bool) {
	if block, _ := pem.Decode([]byte(c.CertificateString)); block != nil {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			return sigdb.Of(cert), true
		}
	}
	ends, _ := time.Parse(time.RFC3339, c.ValidNotAfter) // not said
	name := clean(c.Subject.CommonName)
	return inventory.Certificate{Name: name, EndsAt: ends.UTC()}, name != ""
}

// addManagerPort tells the controller's own port: the first that has an address.
func (d *driver) addManagerPort(ctx context.Context, s *system, h *inventory.Hardware) error {
	m, err := d.manager(ctx, s)
	if err != nil {
		return err
	}
	return each(ctx, d, m.EthernetInterfaces.ID, func(p *port) {
		// Managers also list the internal port to the host (RNDIS), mostly without an address.
		if h.BMC.Address != "" || p.mac() == "" {
			return
		}
		h.BMC.MAC = p.mac()
		if len(p.IPv4Addresses) > 0 {
			h.BMC.Address, h.BMC.IsStatic = clean(p.IPv4Addresses[0].Address), p.IPv4Addresses[0].AddressOrigin == "Static"
		}
		if p.VLAN.VLANEnable && p.VLAN.VLANID > 0 && p.VLAN.VLANID < 4095 {
			h.BMC.VLAN = p.VLAN.VLANID
		}
	})
}

// gib turns GiB, which controllers round to quarters at best, into bytes. The condition is written so that NaN, which is no
// number greater than 0, also gives 0.
func gib(n number) int64 {
	if !(n > 0) || n > 1<<24 {
		return 0
	}
	return int64(math.Round(float64(n) * 1024 * 1024 * 1024))
}

// bounded keeps a number from outside in its range; a value outside of it, NaN included, becomes 0.
func bounded(n, most number) int {
	if !(n > 0) || n > most {
		return 0
	}
	return int(n)
}

// lower is clean in lower case, as UUIDs are compared.
func lower(s string) string { return strings.ToLower(clean(s)) }
