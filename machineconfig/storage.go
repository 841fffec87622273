package machineconfig

// Storage is how disks are laid out. Empty leaves it to the OS or installer.
type Storage struct {
	// Layout is a ready-made one that an installer makes on the root device: os-default, lvm or direct.
	Layout      string        `yaml:"layout,omitempty" json:"layout,omitempty"`
	Disks       []Disk        `yaml:"disks,omitempty" json:"disks,omitempty"`
	RAIDs       []RAID        `yaml:"raids,omitempty" json:"raids,omitempty"`
	LUKS        []LUKS        `yaml:"luks,omitempty" json:"luks,omitempty"`
	LVM         []VolumeGroup `yaml:"lvm,omitempty" json:"lvm,omitempty"`
	Filesystems []Filesystem  `yaml:"filesystems,omitempty" json:"filesystems,omitempty"`
}

// Disk is a disk with its partition table (GPT). Name is what others refer to it by when it has no partitions.
type Disk struct {
	Name       string         `yaml:"name" json:"name"`
	Device     DeviceSelector `yaml:"device,omitempty" json:"device,omitzero"` // the root device when empty
	WipeTable  bool           `yaml:"wipeTable,omitempty" json:"wipeTable,omitempty"`
	Partitions []Partition    `yaml:"partitions,omitempty" json:"partitions,omitempty"`
}

// Partition is a piece of a disk. Label names it: devices refer to it by that.
type Partition struct {
	Label     string `yaml:"label" json:"label"`
	Number    int    `yaml:"number,omitempty" json:"number,omitempty"` // 0 is the next free one
	TypeGUID  string `yaml:"typeGUID,omitempty" json:"typeGUID,omitempty"`
	GUID      string `yaml:"guid,omitempty" json:"guid,omitempty"`
	StartMiB  int    `yaml:"startMiB,omitempty" json:"startMiB,omitempty"`
	SizeMiB   int    `yaml:"sizeMiB,omitempty" json:"sizeMiB,omitempty"` // 0 is the rest of the disk
	WipeEntry bool   `yaml:"wipeEntry,omitempty" json:"wipeEntry,omitempty"`
}

// RAID is a Linux software RAID. Devices are labels of partitions, names of disks, or paths.
type RAID struct {
	Name    string   `yaml:"name" json:"name"`
	Level   string   `yaml:"level" json:"level"` // raid0, raid1, raid4, raid5, raid6, raid10
	Devices []string `yaml:"devices" json:"devices"`
	Spares  int      `yaml:"spares,omitempty" json:"spares,omitempty"`
}

// LUKS is an encrypted volume. Device is a label of a partition, the name of a RAID, or a path.
type LUKS struct {
	Name   string `yaml:"name" json:"name"`
	Device string `yaml:"device" json:"device"`
	Key    string `yaml:"key,omitempty" json:"key,omitempty"` // secret://name
	TPM2   bool   `yaml:"tpm2,omitempty" json:"tpm2,omitempty"`
	Tang   []Tang `yaml:"tang,omitempty" json:"tang,omitempty"`
	Wipe   bool   `yaml:"wipe,omitempty" json:"wipe,omitempty"`
}

// Tang is a server that unlocks a volume while the machine is on its network.
type Tang struct {
	URL        string `yaml:"url" json:"url"`
	Thumbprint string `yaml:"thumbprint" json:"thumbprint"`
}

// VolumeGroup is an LVM volume group.
type VolumeGroup struct {
	Name    string          `yaml:"name" json:"name"`
	Devices []string        `yaml:"devices" json:"devices"`
	LVs     []LogicalVolume `yaml:"lvs,omitempty" json:"lvs,omitempty"`
}

// LogicalVolume is a volume of a group; a file system refers to it as group/name.
type LogicalVolume struct {
	Name    string `yaml:"name" json:"name"`
	SizeMiB int    `yaml:"sizeMiB,omitempty" json:"sizeMiB,omitempty"` // 0 is the rest of the group
}

// Filesystem is a file system and where it is mounted. Device is a label of a partition, the name of a RAID or LUKS
// volume, group/name of a logical volume, or a path.
type Filesystem struct {
	Device       string   `yaml:"device" json:"device"`
	Format       string   `yaml:"format" json:"format"` // ext4, xfs, btrfs, vfat or swap
	Label        string   `yaml:"label,omitempty" json:"label,omitempty"`
	UUID         string   `yaml:"uuid,omitempty" json:"uuid,omitempty"`
	MountPoint   string   `yaml:"mountPoint,omitempty" json:"mountPoint,omitempty"`
	Options      []string `yaml:"options,omitempty" json:"options,omitempty"` // of mkfs
	MountOptions []string `yaml:"mountOptions,omitempty" json:"mountOptions,omitempty"`
	Wipe         bool     `yaml:"wipe,omitempty" json:"wipe,omitempty"`
}
