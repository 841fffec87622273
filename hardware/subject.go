package hardware

import "slipway.dev/slipway/inventory"

// Subject is a host together with what it is made of, as requirements and expressions see it. It is for one goroutine,
// which may ask it any number of times.
type Subject struct {
	host *inventory.Host
	hw   *inventory.Hardware // nil when the host was never inspected
	view *view               // made for the first expression
}

// NewSubject returns a host as requirements see it; hw is nil for one that was never inspected. Both must not change
// while the subject is used.
func NewSubject(h *inventory.Host, hw *inventory.Hardware) *Subject { return &Subject{host: h, hw: hw} }

// view is what expressions know as host, in the JSON names of the API. A pointer that is nil is a part that is not known:
// reading it makes the expression fail for this host.
type view struct {
	Name          string             `json:"name"`
	State         inventory.State    `json:"state"`
	UUID          string             `json:"uuid"`
	Serial        string             `json:"serial"`
	AssetTag      string             `json:"assetTag"`
	Manufacturer  string             `json:"manufacturer"`
	Product       string             `json:"product"`
	Arch          inventory.Arch     `json:"arch"`
	MemoryMiB     int                `json:"memoryMiB"`
	InMaintenance bool               `json:"inMaintenance"`
	IsProtected   bool               `json:"isProtected"`
	IsInspected   bool               `json:"isInspected"`
	FailureN      int                `json:"failureN"`
	Place         *inventory.Place   `json:"place"`
	Labels        map[string]string  `json:"labels"`
	Facts         map[string]string  `json:"facts"`
	Taints        *[]inventory.Taint `json:"taints"`
	NICs          *[]inventory.NIC   `json:"nics"`

	System       *inventory.System       `json:"system"`
	Firmware     *inventory.FirmwareInfo `json:"firmware"`
	CPU          *inventory.CPU          `json:"cpu"`
	MemoryBytes  *int64                  `json:"memoryBytes"`
	DIMMs        *[]inventory.DIMM       `json:"dimms"`
	Disks        *[]inventory.Disk       `json:"disks"`
	Ports        *[]inventory.Port       `json:"ports"`
	Accelerators *[]inventory.PCIDevice  `json:"accelerators"`
	PCI          *[]inventory.PCIDevice  `json:"pci"`
	TPM          *inventory.TPM          `json:"tpm"`
	BMC          *inventory.BMCFacts     `json:"bmc"`
}

func (s *Subject) look() *view {
	if s.view != nil {
		return s.view
	}
	h := s.host
	v := &view{
		Name: h.Name, State: h.State, UUID: h.UUID, Serial: h.Serial, AssetTag: h.AssetTag, Manufacturer: h.Manufacturer,
		Product: h.Product, Arch: Arch(h, s.hw), MemoryMiB: h.MemoryMiB, InMaintenance: h.InMaintenance,
		IsProtected: h.IsProtected, IsInspected: s.hw != nil, FailureN: h.FailureN,
		Place: &h.Place, Labels: h.Labels, Facts: h.Facts, Taints: &h.Taints, NICs: &h.NICs,
	}
	if n := Memory(h, s.hw); n > 0 {
		v.MemoryBytes = &n
	}
	if hw := s.hw; hw != nil {
		v.System, v.Firmware, v.CPU, v.TPM, v.BMC = &hw.System, &hw.Firmware, &hw.CPU, hw.TPM, hw.BMC
		v.DIMMs, v.Disks, v.Ports, v.Accelerators, v.PCI = &hw.DIMMs, &hw.Disks, &hw.Ports, &hw.Accelerators, &hw.PCI
		if v.MemoryBytes == nil {
			v.MemoryBytes = &hw.MemoryBytes
		}
	}
	s.view = v
	return v
}
