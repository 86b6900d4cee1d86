// Release makes all that a release has, from a clean commit. It needs Go and git, and ssh-keygen to sign:
//
//	release [-out dist] [-version v0.1.0] [-signing-key FILE] [-only linux/amd64] [-dirty]
//
//	idalloc_VERSION_linux_ARCH.tar.gz            the static binary for pods and people
//	idalloc-autoscaler_VERSION_linux_ARCH.tar.gz the autoscaler's
//	idalloc-controller_VERSION_linux_ARCH.tar.gz the controller's
//	kubectl-idalloc_VERSION_OS_ARCH.tar.gz       the kubectl plugin; for Windows a .zip
//	idalloc.yaml                                 the plugin's manifest for krew
//	idalloc_VERSION_image.tar                    the image as an OCI archive, for both architectures
//	idalloc-autoscaler_VERSION_image.tar         the autoscaler's
//	idalloc-controller_VERSION_image.tar         the controller's
//	idalloc_VERSION_chart.tgz                    the Helm chart
//	idalloc_VERSION_config.tgz                   the folders for kustomize
//	*.cdx.json                                   for each binary, what it was built of (CycloneDX)
//	idalloc_VERSION.intoto.json                  what all these, and the images, were made from (in-toto, SLSA)
//	SHA256SUMS                                   the checksums of all these
//	SHA256SUMS.sig                               its signature (ssh-keygen -Y), if there is a key
//
// The chart, the folders and the plugin name the images by their digests.
//
// The same commit gives the same bytes, on whatever machine and in whatever directory: the go.mod names the toolchain, the
// builds know no path and no time, and the archives have the commit's time. There is no stamp of version control, because it depends on the
// clone's tags: the image's labels and the bills of materials name the commit. go-containerregistry makes the images, so no daemon and no root
// is needed. CycloneDX's library reads what is linked from the binaries themselves.
package main
