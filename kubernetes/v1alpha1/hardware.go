package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// Hardware is what a host is made of, as its last inspection found it.
type Hardware struct {
	// system is the chassis.
	// +optional
	System HostSystem `json:"system,omitempty,omitzero"`
	// cpu sums up the processors.
	// +optional
	CPU HostCPU `json:"cpu,omitempty,omitzero"`
	// memory in all.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// disks of the host.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Disks []HostDisk `json:"disks,omitempty"`
	// nics are the network ports.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NICs []HostNIC `json:"nics,omitempty"`
	// accelerators such as GPUs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Accelerators []HostAccelerator `json:"accelerators,omitempty"`
	// firmware it boots with.
	// +optional
	Firmware Firmware `json:"firmware,omitempty"`
}

// Firmware is how a host boots.
// +kubebuilder:validation:Enum=BIOS;UEFI
type Firmware string

// The values of Firmware.
const (
	FirmwareBIOS Firmware = "BIOS"
	FirmwareUEFI Firmware = "UEFI"
)

// HostSystem is a chassis.
type HostSystem struct {
	// uuid as SMBIOS has it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UUID string `json:"uuid,omitempty"`
	// manufacturer of the system.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Manufacturer string `json:"manufacturer,omitempty"`
	// product is the model.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Product string `json:"product,omitempty"`
	// serial number.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Serial string `json:"serial,omitempty"`
	// biosVersion of the firmware.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	BIOSVersion string `json:"biosVersion,omitempty"`
}

// HostCPU sums up the processors.
type HostCPU struct {
	// architecture of the processors.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Architecture string `json:"architecture,omitempty"`
	// model name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Model string `json:"model,omitempty"`
	// sockets that are filled.
	// +optional
	Sockets int32 `json:"sockets,omitempty"`
	// cores in all.
	// +optional
	Cores int32 `json:"cores,omitempty"`
	// threads in all.
	// +optional
	Threads int32 `json:"threads,omitempty"`
}

// HostDisk is one disk.
type HostDisk struct {
	// name as the agent saw it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// size of the disk.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// model of the disk.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Model string `json:"model,omitempty"`
	// serial number.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Serial string `json:"serial,omitempty"`
	// wwn is the world wide name.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	WWN string `json:"wwn,omitempty"`
	// rotational disks turn.
	// +optional
	Rotational *bool `json:"rotational,omitempty"`
	// transport such as nvme, sata, sas.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Transport string `json:"transport,omitempty"`
}

// HostNIC is one network port.
type HostNIC struct {
	// name as the agent saw it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`
	// mac is its hardware address.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	MAC string `json:"mac"`
	// speedMbps in megabits per second.
	// +optional
	SpeedMbps int32 `json:"speedMbps,omitempty"`
	// link is true with a carrier.
	// +optional
	Link *bool `json:"link,omitempty"`
	// switch that LLDP names.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Switch string `json:"switch,omitempty"`
	// switchPort that LLDP names.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	SwitchPort string `json:"switchPort,omitempty"`
}

// HostAccelerator is one accelerator.
type HostAccelerator struct {
	// vendor of the device.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Vendor string `json:"vendor"`
	// model of the device.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Model string `json:"model,omitempty"`
	// pciID is vendor:device in hex.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PCIID string `json:"pciID,omitempty"`
}
