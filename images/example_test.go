package images_test

import (
	"fmt"

	"slipway.dev/slipway/images"
)

// A list has sums for the files of a folder. A path may begin above or below that folder.
func ExampleParseSums() {
	sums, err := images.ParseSums([]byte(`
e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  netboot/linux
SHA256 (netboot/initrd.gz) = 5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	sum, ok, err := sums.Find("debian-installer/netboot/initrd.gz")
	fmt.Println(sum.SHA256.Hex()[:16], ok, err)
	// Output: 5feceb66ffc86f38 true <nil>
}
