// The comparison of strategies is a module of its own: nobody who uses idalloc has to know of the libraries that it compares with.
module github.com/idalloc/idalloc/test/bench/partitions

go 1.26.8

replace (
	github.com/idalloc/idalloc => ../../..
	github.com/idalloc/idalloc/autoscaler => ../../../autoscaler
)

require (
	github.com/dgryski/go-jump v0.0.0-20170409065014-e1f439676b57
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f
	github.com/idalloc/idalloc v0.0.0-00010101000000-000000000000
	github.com/idalloc/idalloc/autoscaler v0.0.0-00010101000000-000000000000
	github.com/serialx/hashring v0.0.0-20200727003509-22c0c7ab6b1b
	github.com/twmb/franz-go v1.22.2
	github.com/twmb/franz-go/pkg/kmsg v1.15.0
	gonum.org/v1/plot v0.17.0
)

require (
	codeberg.org/go-fonts/liberation v0.5.0 // indirect
	codeberg.org/go-latex/latex v0.2.0 // indirect
	codeberg.org/go-pdf/fpdf v0.11.1 // indirect
	git.sr.ht/~sbinet/gg v0.7.0 // indirect
	github.com/ajstarks/svgo v0.0.0-20211024235047-1546f124cd8b // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/pierrec/lz4/v4 v4.1.33 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	golang.org/x/image v0.30.0 // indirect
	golang.org/x/text v0.40.0 // indirect
)
