package imports

// bounds are the limits of one import. Beyond each of them is an error that
// names it.
type bounds struct {
	maxFile         int64 // bytes of one file, decompressed
	maxConversation int64 // bytes of one conversation, one project or one line
	maxRecord       int64 // bytes of one memory with its metadata
	maxTotal        int64 // bytes read from one zip, decompressed
	maxEntries      int   // files and folders in a zip
	maxFiles        int   // files and folders in a folder
	maxMessages     int   // of a conversation, or nodes of its tree
	maxKnown        int   // memories of which a format tells duplicates apart
}

// standard has the bounds of Read.
var standard = bounds{
	maxFile:         256 << 20,
	maxConversation: 32 << 20,
	maxRecord:       4 << 20,
	maxTotal:        4 << 30,
	maxEntries:      10_000,
	maxFiles:        100_000,
	maxMessages:     maxElements,
	maxKnown:        1_000_000,
}

const (
	// maxElements bounds an array, or the members of an object, that is decoded
	// whole. An element takes more memory than its JSON.
	maxElements = 100_000

	// maxDepth bounds how deep JSON is nested that nobody needs.
	maxDepth = 1_000

	// maxBlank bounds the blanks before the first value of a file, in bytes.
	maxBlank = 64 << 10

	// maxSniff bounds what is read of a file to detect its format, in bytes.
	maxSniff = 1 << 20

	// maxSniffed bounds the files that are read to detect a format, and the
	// values that are looked at in each.
	maxSniffed, maxSniffedValues = 1_000, 50

	// maxShownName bounds the name of a file in an error, in bytes.
	maxShownName = 200
)
