/* media_type_table.h - made by media_type_table.py: do not edit. Extensions, sorted, and types are NUL-terminated, one
 * after the other; an entry has the offsets of both. */
/* clang-format off */
#ifndef GATLING_MEDIA_MEDIA_TYPE_TABLE_H
#define GATLING_MEDIA_MEDIA_TYPE_TABLE_H

#include <stdint.h>

static const char table_extensions[] =
	"123\0"
	"1km\0"
	"210\0"
	"3dml\0"
	"3ds\0"
	"3g2\0"
	"3gp\0"
	"3gpp\0"
	"3mf\0"
	"7z\0"
	"aab\0"
	"aac\0"
	"aam\0"
	"aas\0"
	"abw\0"
	"ac3\0"
	"acc\0"
	"ace\0"
	"acu\0"
	"acutc\0"
	"adp\0"
	"adts\0"
	"aep\0"
	"afm\0"
	"afp\0"
	"age\0"
	"ahead\0"
	"ai\0"
	"aif\0"
	"aifc\0"
	"aiff\0"
	"air\0"
	"ait\0"
	"ami\0"
	"aml\0"
	"amlx\0"
	"amr\0"
	"apk\0"
	"apng\0"
	"appcache\0"
	"appinstaller\0"
	"appx\0"
	"appxbundle\0"
	"apr\0"
	"arc\0"
	"arj\0"
	"arrow\0"
	"asc\0"
	"asf\0"
	"asm\0"
	"aso\0"
	"asx\0"
	"atc\0"
	"atom\0"
	"atomcat\0"
	"atomdeleted\0"
	"atomsvc\0"
	"atx\0"
	"au\0"
	"avci\0"
	"avcs\0"
	"avi\0"
	"avif\0"
	"aw\0"
	"azf\0"
	"azs\0"
	"azv\0"
	"azw\0"
	"b16\0"
	"bary\0"
	"bat\0"
	"bcpio\0"
	"bdf\0"
	"bdm\0"
	"bdo\0"
	"bdoc\0"
	"bed\0"
	"bh2\0"
	"bin\0"
	"blb\0"
	"blend\0"
	"blorb\0"
	"bmi\0"
	"bmml\0"
	"bmp\0"
	"boz\0"
	"bpk\0"
	"br\0"
	"brush\0"
	"brushset\0"
	"bsp\0"
	"btf\0"
	"btif\0"
	"bz\0"
	"bz2\0"
	"c\0"
	"c11amc\0"
	"c11amz\0"
	"c4d\0"
	"c4f\0"
	"c4g\0"
	"c4p\0"
	"c4u\0"
	"cab\0"
	"caf\0"
	"cap\0"
	"cb7\0"
	"cba\0"
	"cbor\0"
	"cbr\0"
	"cbt\0"
	"cbz\0"
	"cc\0"
	"cco\0"
	"cct\0"
	"ccxml\0"
	"cdbcmsg\0"
	"cdf\0"
	"cdfx\0"
	"cdkey\0"
	"cdmia\0"
	"cdmic\0"
	"cdmid\0"
	"cdmio\0"
	"cdmiq\0"
	"cdx\0"
	"cdxml\0"
	"cdy\0"
	"cer\0"
	"cfs\0"
	"cgm\0"
	"chat\0"
	"chm\0"
	"chrt\0"
	"cif\0"
	"cii\0"
	"cjs\0"
	"cla\0"
	"cld\0"
	"clkk\0"
	"clkp\0"
	"clkt\0"
	"clkw\0"
	"clkx\0"
	"clp\0"
	"cmc\0"
	"cmdf\0"
	"cml\0"
	"cmx\0"
	"cod\0"
	"coffee\0"
	"conf\0"
	"cpio\0"
	"cpl\0"
	"cpp\0"
	"cpt\0"
	"crd\0"
	"crl\0"
	"crt\0"
	"crx\0"
	"cryptonote\0"
	"csh\0"
	"csl\0"
	"csml\0"
	"csp\0"
	"css\0"
	"cst\0"
	"csv\0"
	"cu\0"
	"curl\0"
	"cwl\0"
	"cww\0"
	"cxt\0"
	"cxx\0"
	"dae\0"
	"daf\0"
	"dart\0"
	"dataless\0"
	"davmount\0"
	"dbf\0"
	"dbk\0"
	"dcm\0"
	"dcmp\0"
	"dcr\0"
	"dcurl\0"
	"dd2\0"
	"ddd\0"
	"ddf\0"
	"dds\0"
	"deb\0"
	"def\0"
	"der\0"
	"dfac\0"
	"dgc\0"
	"dib\0"
	"dic\0"
	"diff\0"
	"dir\0"
	"disposition-notification\0"
	"djv\0"
	"djvu\0"
	"dll\0"
	"dmg\0"
	"dmp\0"
	"dms\0"
	"dng\0"
	"doc\0"
	"docm\0"
	"docx\0"
	"dotm\0"
	"dotx\0"
	"dp\0"
	"dpg\0"
	"dpx\0"
	"dra\0"
	"drle\0"
	"drm\0"
	"dsc\0"
	"dssc\0"
	"dtb\0"
	"dtd\0"
	"dts\0"
	"dtshd\0"
	"dvb\0"
	"dvi\0"
	"dwd\0"
	"dwf\0"
	"dwg\0"
	"dxf\0"
	"dxp\0"
	"dxr\0"
	"ear\0"
	"ecelp4800\0"
	"ecelp7470\0"
	"ecelp9600\0"
	"ecma\0"
	"edm\0"
	"edx\0"
	"efif\0"
	"ei6\0"
	"emf\0"
	"eml\0"
	"emma\0"
	"emotionml\0"
	"emz\0"
	"eol\0"
	"eot\0"
	"eps\0"
	"epub\0"
	"es3\0"
	"esa\0"
	"esf\0"
	"et3\0"
	"etx\0"
	"eva\0"
	"evy\0"
	"exe\0"
	"exi\0"
	"exr\0"
	"ez\0"
	"ez2\0"
	"ez3\0"
	"f\0"
	"f4v\0"
	"f77\0"
	"f90\0"
	"fbs\0"
	"fbx\0"
	"fcdt\0"
	"fcs\0"
	"fdf\0"
	"fdt\0"
	"fe_launch\0"
	"fg5\0"
	"fgd\0"
	"fh\0"
	"fh4\0"
	"fh5\0"
	"fh7\0"
	"fhc\0"
	"fig\0"
	"fits\0"
	"flac\0"
	"fli\0"
	"flo\0"
	"flv\0"
	"flw\0"
	"flx\0"
	"fly\0"
	"fm\0"
	"fnc\0"
	"fo\0"
	"for\0"
	"fpx\0"
	"fsc\0"
	"fst\0"
	"ftc\0"
	"fti\0"
	"fvt\0"
	"fxp\0"
	"fxpl\0"
	"fzs\0"
	"g2w\0"
	"g3\0"
	"g3w\0"
	"gac\0"
	"gam\0"
	"gbr\0"
	"gca\0"
	"gdl\0"
	"gdoc\0"
	"gdraw\0"
	"ged\0"
	"geo\0"
	"geojson\0"
	"gex\0"
	"gform\0"
	"ggb\0"
	"ggs\0"
	"ggt\0"
	"ghf\0"
	"gif\0"
	"gim\0"
	"gjam\0"
	"glb\0"
	"gltf\0"
	"gmap\0"
	"gml\0"
	"gmx\0"
	"gnumeric\0"
	"gph\0"
	"gpkg\0"
	"gpx\0"
	"gqf\0"
	"gqs\0"
	"gram\0"
	"gramps\0"
	"gre\0"
	"grv\0"
	"grxml\0"
	"gscript\0"
	"gsf\0"
	"gsheet\0"
	"gsite\0"
	"gslides\0"
	"gtar\0"
	"gtm\0"
	"gtw\0"
	"gv\0"
	"gxf\0"
	"gxt\0"
	"gz\0"
	"h\0"
	"h261\0"
	"h263\0"
	"h264\0"
	"hal\0"
	"hbci\0"
	"hbs\0"
	"hdd\0"
	"hdf\0"
	"heic\0"
	"heics\0"
	"heif\0"
	"heifs\0"
	"hej2\0"
	"held\0"
	"hh\0"
	"hjson\0"
	"hlp\0"
	"hpgl\0"
	"hpid\0"
	"hpp\0"
	"hps\0"
	"hqx\0"
	"htc\0"
	"htke\0"
	"htm\0"
	"html\0"
	"hvd\0"
	"hvp\0"
	"hvs\0"
	"i2g\0"
	"icc\0"
	"ice\0"
	"icm\0"
	"ico\0"
	"ics\0"
	"ief\0"
	"ifb\0"
	"ifm\0"
	"iges\0"
	"igl\0"
	"igm\0"
	"igs\0"
	"igx\0"
	"iif\0"
	"img\0"
	"ims\0"
	"ini\0"
	"ink\0"
	"inkml\0"
	"iota\0"
	"ipfix\0"
	"ipk\0"
	"ipynb\0"
	"irm\0"
	"irp\0"
	"iso\0"
	"itp\0"
	"ivp\0"
	"ivu\0"
	"jad\0"
	"jade\0"
	"jaii\0"
	"jais\0"
	"jar\0"
	"jardiff\0"
	"java\0"
	"jfif\0"
	"jhc\0"
	"jisp\0"
	"jls\0"
	"jlt\0"
	"jng\0"
	"jnlp\0"
	"joda\0"
	"jp2\0"
	"jpe\0"
	"jpeg\0"
	"jpf\0"
	"jpg\0"
	"jpg2\0"
	"jpgm\0"
	"jpgv\0"
	"jph\0"
	"jpm\0"
	"jpx\0"
	"js\0"
	"json\0"
	"json5\0"
	"jsonld\0"
	"jsonml\0"
	"jsx\0"
	"jt\0"
	"jxl\0"
	"jxr\0"
	"jxra\0"
	"jxrs\0"
	"jxs\0"
	"jxsc\0"
	"jxsi\0"
	"jxss\0"
	"kar\0"
	"karbon\0"
	"kdbx\0"
	"kfo\0"
	"kia\0"
	"kml\0"
	"kmz\0"
	"kne\0"
	"knp\0"
	"kon\0"
	"kpr\0"
	"kpt\0"
	"kpxx\0"
	"ksp\0"
	"ktr\0"
	"ktx\0"
	"ktx2\0"
	"ktz\0"
	"kwd\0"
	"kwt\0"
	"lasxml\0"
	"latex\0"
	"lbd\0"
	"lbe\0"
	"less\0"
	"lgr\0"
	"lha\0"
	"link66\0"
	"list\0"
	"list3820\0"
	"listafp\0"
	"litcoffee\0"
	"lnk\0"
	"log\0"
	"lostxml\0"
	"lottie\0"
	"lrm\0"
	"ltf\0"
	"lua\0"
	"luac\0"
	"lvp\0"
	"lwp\0"
	"lzh\0"
	"m13\0"
	"m14\0"
	"m1v\0"
	"m21\0"
	"m2a\0"
	"m2t\0"
	"m2ts\0"
	"m2v\0"
	"m3a\0"
	"m3u\0"
	"m3u8\0"
	"m4a\0"
	"m4b\0"
	"m4p\0"
	"m4s\0"
	"m4u\0"
	"m4v\0"
	"ma\0"
	"mads\0"
	"maei\0"
	"manifest\0"
	"map\0"
	"mar\0"
	"markdown\0"
	"mathml\0"
	"mb\0"
	"mbk\0"
	"mbox\0"
	"mc1\0"
	"mcd\0"
	"mcurl\0"
	"md\0"
	"mdb\0"
	"mdi\0"
	"mdx\0"
	"mesh\0"
	"meta4\0"
	"metalink\0"
	"mets\0"
	"mfm\0"
	"mft\0"
	"mgp\0"
	"mgz\0"
	"mht\0"
	"mhtml\0"
	"mid\0"
	"midi\0"
	"mie\0"
	"mif\0"
	"mime\0"
	"mj2\0"
	"mjp2\0"
	"mjs\0"
	"mk3d\0"
	"mka\0"
	"mkd\0"
	"mks\0"
	"mkv\0"
	"mlp\0"
	"mmd\0"
	"mmf\0"
	"mml\0"
	"mmr\0"
	"mng\0"
	"mny\0"
	"mobi\0"
	"mods\0"
	"mov\0"
	"movie\0"
	"mp2\0"
	"mp21\0"
	"mp2a\0"
	"mp3\0"
	"mp4\0"
	"mp4a\0"
	"mp4s\0"
	"mp4v\0"
	"mpc\0"
	"mpd\0"
	"mpe\0"
	"mpeg\0"
	"mpf\0"
	"mpg\0"
	"mpg4\0"
	"mpga\0"
	"mpkg\0"
	"mpm\0"
	"mpn\0"
	"mpp\0"
	"mpt\0"
	"mpy\0"
	"mqy\0"
	"mrc\0"
	"mrcx\0"
	"mscml\0"
	"mseed\0"
	"mseq\0"
	"msf\0"
	"msg\0"
	"msh\0"
	"msi\0"
	"msix\0"
	"msixbundle\0"
	"msl\0"
	"msm\0"
	"msp\0"
	"msty\0"
	"mtl\0"
	"mts\0"
	"mus\0"
	"musd\0"
	"musicxml\0"
	"mvb\0"
	"mvt\0"
	"mwf\0"
	"mxf\0"
	"mxl\0"
	"mxmf\0"
	"mxml\0"
	"mxs\0"
	"mxu\0"
	"n-gage\0"
	"n3\0"
	"nb\0"
	"nbp\0"
	"nc\0"
	"ncx\0"
	"nfo\0"
	"ngdat\0"
	"nitf\0"
	"nlu\0"
	"nml\0"
	"nnd\0"
	"nns\0"
	"nnw\0"
	"npx\0"
	"nq\0"
	"nsc\0"
	"nsf\0"
	"nt\0"
	"ntf\0"
	"numbers\0"
	"nzb\0"
	"oa2\0"
	"oa3\0"
	"oas\0"
	"obd\0"
	"obgx\0"
	"obj\0"
	"oda\0"
	"odb\0"
	"odc\0"
	"odf\0"
	"odft\0"
	"odg\0"
	"odi\0"
	"odm\0"
	"odp\0"
	"ods\0"
	"odt\0"
	"oga\0"
	"ogex\0"
	"ogg\0"
	"ogv\0"
	"ogx\0"
	"omdoc\0"
	"one\0"
	"onea\0"
	"onepkg\0"
	"onetmp\0"
	"onetoc\0"
	"onetoc2\0"
	"opf\0"
	"opml\0"
	"oprc\0"
	"opus\0"
	"osf\0"
	"osfpvg\0"
	"osm\0"
	"otc\0"
	"otf\0"
	"otg\0"
	"oth\0"
	"oti\0"
	"otp\0"
	"ots\0"
	"ott\0"
	"ova\0"
	"ovf\0"
	"owl\0"
	"oxps\0"
	"oxt\0"
	"p\0"
	"p10\0"
	"p12\0"
	"p21\0"
	"p7b\0"
	"p7c\0"
	"p7m\0"
	"p7r\0"
	"p7s\0"
	"p8\0"
	"pac\0"
	"pages\0"
	"parquet\0"
	"pas\0"
	"patch\0"
	"paw\0"
	"pbd\0"
	"pbm\0"
	"pcap\0"
	"pcf\0"
	"pcl\0"
	"pclxl\0"
	"pct\0"
	"pcurl\0"
	"pcx\0"
	"pdb\0"
	"pde\0"
	"pdf\0"
	"pem\0"
	"pfa\0"
	"pfb\0"
	"pfm\0"
	"pfr\0"
	"pfx\0"
	"pgm\0"
	"pgn\0"
	"pgp\0"
	"php\0"
	"pic\0"
	"pkg\0"
	"pki\0"
	"pkipath\0"
	"pkpass\0"
	"pl\0"
	"plb\0"
	"plc\0"
	"plf\0"
	"pls\0"
	"pm\0"
	"png\0"
	"pnm\0"
	"portpkg\0"
	"pot\0"
	"potm\0"
	"potx\0"
	"ppam\0"
	"ppd\0"
	"ppm\0"
	"pps\0"
	"ppsm\0"
	"ppsx\0"
	"ppt\0"
	"pptm\0"
	"pptx\0"
	"pqa\0"
	"prc\0"
	"provx\0"
	"ps\0"
	"psb\0"
	"psd\0"
	"psf\0"
	"pskcxml\0"
	"pti\0"
	"ptid\0"
	"pvb\0"
	"pwn\0"
	"py\0"
	"pya\0"
	"pyo\0"
	"pyox\0"
	"pyv\0"
	"qam\0"
	"qbo\0"
	"qfx\0"
	"qps\0"
	"qt\0"
	"qwd\0"
	"qwt\0"
	"qxb\0"
	"qxd\0"
	"qxl\0"
	"qxt\0"
	"ra\0"
	"ram\0"
	"raml\0"
	"rapd\0"
	"rar\0"
	"ras\0"
	"rb\0"
	"rcprofile\0"
	"rdf\0"
	"rdz\0"
	"relo\0"
	"rgb\0"
	"rif\0"
	"rip\0"
	"ris\0"
	"rl\0"
	"rlc\0"
	"rld\0"
	"rm\0"
	"rmi\0"
	"rmp\0"
	"rms\0"
	"rmvb\0"
	"rnc\0"
	"rng\0"
	"roa\0"
	"roff\0"
	"rp9\0"
	"rpm\0"
	"rpss\0"
	"rpst\0"
	"rq\0"
	"rs\0"
	"rsat\0"
	"rsd\0"
	"rsheet\0"
	"rss\0"
	"rst\0"
	"rtf\0"
	"rtx\0"
	"run\0"
	"rusd\0"
	"s3m\0"
	"saf\0"
	"sass\0"
	"sbml\0"
	"scd\0"
	"scq\0"
	"scs\0"
	"scss\0"
	"scurl\0"
	"sda\0"
	"sdc\0"
	"sdd\0"
	"sdkd\0"
	"sdkm\0"
	"sdp\0"
	"sdw\0"
	"sea\0"
	"seed\0"
	"sema\0"
	"semd\0"
	"semf\0"
	"senmlx\0"
	"sensmlx\0"
	"ser\0"
	"setpay\0"
	"setreg\0"
	"sfd-hdstx\0"
	"sfs\0"
	"sfv\0"
	"sgi\0"
	"sgl\0"
	"sgm\0"
	"sgml\0"
	"sh\0"
	"shar\0"
	"shex\0"
	"shf\0"
	"shtml\0"
	"sid\0"
	"sieve\0"
	"sig\0"
	"sil\0"
	"silo\0"
	"sis\0"
	"sisx\0"
	"sit\0"
	"sitx\0"
	"siv\0"
	"skd\0"
	"skm\0"
	"skp\0"
	"skt\0"
	"sldm\0"
	"sldx\0"
	"slim\0"
	"slm\0"
	"slt\0"
	"smf\0"
	"smi\0"
	"smil\0"
	"smv\0"
	"smzip\0"
	"snd\0"
	"snf\0"
	"so\0"
	"spc\0"
	"spdx\0"
	"spf\0"
	"spl\0"
	"spp\0"
	"spq\0"
	"spx\0"
	"sql\0"
	"sqlite\0"
	"sqlite3\0"
	"srt\0"
	"sru\0"
	"srx\0"
	"ssdl\0"
	"sse\0"
	"ssf\0"
	"ssml\0"
	"stc\0"
	"step\0"
	"stf\0"
	"sti\0"
	"stk\0"
	"stl\0"
	"stp\0"
	"stpnc\0"
	"stpx\0"
	"stpxz\0"
	"stpz\0"
	"stw\0"
	"styl\0"
	"stylus\0"
	"sus\0"
	"susp\0"
	"sv4cpio\0"
	"sv4crc\0"
	"svc\0"
	"svd\0"
	"svg\0"
	"svgz\0"
	"swa\0"
	"swf\0"
	"swi\0"
	"swidtag\0"
	"sxc\0"
	"sxd\0"
	"sxg\0"
	"sxi\0"
	"sxm\0"
	"sxw\0"
	"t3\0"
	"t38\0"
	"taglet\0"
	"tao\0"
	"tap\0"
	"tar\0"
	"tcap\0"
	"tcl\0"
	"td\0"
	"teacher\0"
	"tei\0"
	"teicorpus\0"
	"tex\0"
	"texi\0"
	"texinfo\0"
	"text\0"
	"tfi\0"
	"tfm\0"
	"tfx\0"
	"tga\0"
	"tgz\0"
	"thmx\0"
	"tif\0"
	"tiff\0"
	"tmo\0"
	"toml\0"
	"torrent\0"
	"tpl\0"
	"tpt\0"
	"trig\0"
	"trm\0"
	"ts\0"
	"tsd\0"
	"tsv\0"
	"ttc\0"
	"ttf\0"
	"ttl\0"
	"ttml\0"
	"twd\0"
	"twds\0"
	"txd\0"
	"txf\0"
	"txt\0"
	"u32\0"
	"u3d\0"
	"u8dsn\0"
	"u8hdr\0"
	"u8mdn\0"
	"u8msg\0"
	"ubj\0"
	"udeb\0"
	"ufd\0"
	"ufdl\0"
	"ulx\0"
	"umj\0"
	"unityweb\0"
	"uo\0"
	"uoml\0"
	"uri\0"
	"uris\0"
	"urls\0"
	"usda\0"
	"usdz\0"
	"ustar\0"
	"utz\0"
	"uu\0"
	"uva\0"
	"uvd\0"
	"uvf\0"
	"uvg\0"
	"uvh\0"
	"uvi\0"
	"uvm\0"
	"uvp\0"
	"uvs\0"
	"uvt\0"
	"uvu\0"
	"uvv\0"
	"uvva\0"
	"uvvd\0"
	"uvvf\0"
	"uvvg\0"
	"uvvh\0"
	"uvvi\0"
	"uvvm\0"
	"uvvp\0"
	"uvvs\0"
	"uvvt\0"
	"uvvu\0"
	"uvvv\0"
	"uvvx\0"
	"uvvz\0"
	"uvx\0"
	"uvz\0"
	"vbox\0"
	"vbox-extpack\0"
	"vcard\0"
	"vcd\0"
	"vcf\0"
	"vcg\0"
	"vcs\0"
	"vcx\0"
	"vdi\0"
	"vds\0"
	"vdx\0"
	"vhd\0"
	"viv\0"
	"vmdk\0"
	"vob\0"
	"vor\0"
	"vox\0"
	"vrml\0"
	"vsd\0"
	"vsdx\0"
	"vsf\0"
	"vss\0"
	"vst\0"
	"vsw\0"
	"vtf\0"
	"vtt\0"
	"vtu\0"
	"vtx\0"
	"vxml\0"
	"w3d\0"
	"wad\0"
	"wadl\0"
	"war\0"
	"wasm\0"
	"wav\0"
	"wax\0"
	"wbmp\0"
	"wbs\0"
	"wbxml\0"
	"wcm\0"
	"wdb\0"
	"wdp\0"
	"weba\0"
	"webapp\0"
	"webm\0"
	"webmanifest\0"
	"webp\0"
	"wgsl\0"
	"wgt\0"
	"wif\0"
	"wks\0"
	"wm\0"
	"wma\0"
	"wmd\0"
	"wmf\0"
	"wml\0"
	"wmlc\0"
	"wmls\0"
	"wmlsc\0"
	"wmv\0"
	"wmx\0"
	"wmz\0"
	"woff\0"
	"woff2\0"
	"wpd\0"
	"wpl\0"
	"wps\0"
	"wqd\0"
	"wri\0"
	"wrl\0"
	"wsc\0"
	"wsdl\0"
	"wspolicy\0"
	"wtb\0"
	"wvx\0"
	"x32\0"
	"x3d\0"
	"x3db\0"
	"x3dbz\0"
	"x3dv\0"
	"x3dvz\0"
	"x3dz\0"
	"x_b\0"
	"x_t\0"
	"xaml\0"
	"xap\0"
	"xar\0"
	"xav\0"
	"xbap\0"
	"xbd\0"
	"xbm\0"
	"xca\0"
	"xcs\0"
	"xdcf\0"
	"xdf\0"
	"xdm\0"
	"xdp\0"
	"xdssc\0"
	"xdw\0"
	"xel\0"
	"xenc\0"
	"xer\0"
	"xfdf\0"
	"xfdl\0"
	"xht\0"
	"xhtm\0"
	"xhtml\0"
	"xhvml\0"
	"xif\0"
	"xla\0"
	"xlam\0"
	"xlc\0"
	"xlf\0"
	"xlm\0"
	"xls\0"
	"xlsb\0"
	"xlsm\0"
	"xlsx\0"
	"xlt\0"
	"xltm\0"
	"xltx\0"
	"xlw\0"
	"xm\0"
	"xml\0"
	"xns\0"
	"xo\0"
	"xop\0"
	"xpi\0"
	"xpl\0"
	"xpm\0"
	"xpr\0"
	"xps\0"
	"xpw\0"
	"xpx\0"
	"xsd\0"
	"xsf\0"
	"xsl\0"
	"xslt\0"
	"xsm\0"
	"xspf\0"
	"xul\0"
	"xvm\0"
	"xvml\0"
	"xwd\0"
	"xyz\0"
	"xz\0"
	"yaml\0"
	"yang\0"
	"yin\0"
	"yml\0"
	"ymp\0"
	"z1\0"
	"z2\0"
	"z3\0"
	"z4\0"
	"z5\0"
	"z6\0"
	"z7\0"
	"z8\0"
	"zaz\0"
	"zip\0"
	"zir\0"
	"zirz\0"
	"zmm\0"
	"zst\0";

static const char table_types[] =
	"application/andrew-inset\0"
	"application/appinstaller\0"
	"application/applixware\0"
	"application/appx\0"
	"application/appxbundle\0"
	"application/atom+xml\0"
	"application/atomcat+xml\0"
	"application/atomdeleted+xml\0"
	"application/atomsvc+xml\0"
	"application/atsc-dwd+xml\0"
	"application/atsc-held+xml\0"
	"application/atsc-rsat+xml\0"
	"application/automationml-aml+xml\0"
	"application/automationml-amlx+zip\0"
	"application/bdoc\0"
	"application/calendar+xml\0"
	"application/cbor\0"
	"application/ccxml+xml\0"
	"application/cdfx+xml\0"
	"application/cdmi-capability\0"
	"application/cdmi-container\0"
	"application/cdmi-domain\0"
	"application/cdmi-object\0"
	"application/cdmi-queue\0"
	"application/cpl+xml\0"
	"application/cu-seeme\0"
	"application/cwl\0"
	"application/dash+xml\0"
	"application/davmount+xml\0"
	"application/dicom\0"
	"application/docbook+xml\0"
	"application/dssc+der\0"
	"application/dssc+xml\0"
	"application/ecmascript\0"
	"application/emma+xml\0"
	"application/emotionml+xml\0"
	"application/epub+zip\0"
	"application/exi\0"
	"application/fdf\0"
	"application/fdt+xml\0"
	"application/fits\0"
	"application/font-tdpfr\0"
	"application/geo+json\0"
	"application/geopackage+sqlite3\0"
	"application/gml+xml\0"
	"application/gpx+xml\0"
	"application/gxf\0"
	"application/gzip\0"
	"application/hjson\0"
	"application/hyperstudio\0"
	"application/inkml+xml\0"
	"application/ipfix\0"
	"application/java-archive\0"
	"application/java-serialized-object\0"
	"application/json\0"
	"application/json5\0"
	"application/jsonml+json\0"
	"application/ld+json\0"
	"application/lgr+xml\0"
	"application/lost+xml\0"
	"application/mac-binhex40\0"
	"application/mac-compactpro\0"
	"application/mads+xml\0"
	"application/manifest+json\0"
	"application/marc\0"
	"application/marcxml+xml\0"
	"application/mathematica\0"
	"application/mathml+xml\0"
	"application/mbox\0"
	"application/media-policy-dataset+xml\0"
	"application/mediaservercontrol+xml\0"
	"application/metalink+xml\0"
	"application/metalink4+xml\0"
	"application/mets+xml\0"
	"application/mmt-aei+xml\0"
	"application/mmt-usd+xml\0"
	"application/mods+xml\0"
	"application/mp21\0"
	"application/mp4\0"
	"application/msix\0"
	"application/msixbundle\0"
	"application/msword\0"
	"application/mxf\0"
	"application/n-quads\0"
	"application/n-triples\0"
	"application/octet-stream\0"
	"application/oda\0"
	"application/oebps-package+xml\0"
	"application/ogg\0"
	"application/omdoc+xml\0"
	"application/onenote\0"
	"application/oxps\0"
	"application/p2p-overlay+xml\0"
	"application/patch-ops-error+xml\0"
	"application/pdf\0"
	"application/pgp-encrypted\0"
	"application/pgp-signature\0"
	"application/pkcs10\0"
	"application/pkcs7-mime\0"
	"application/pkcs7-signature\0"
	"application/pkcs8\0"
	"application/pkix-cert\0"
	"application/pkix-crl\0"
	"application/pkix-pkipath\0"
	"application/pkixcmp\0"
	"application/postscript\0"
	"application/provenance+xml\0"
	"application/prs.cww\0"
	"application/prs.xsf+xml\0"
	"application/pskc+xml\0"
	"application/raml+yaml\0"
	"application/rdf+xml\0"
	"application/reginfo+xml\0"
	"application/relax-ng-compact-syntax\0"
	"application/resource-lists+xml\0"
	"application/resource-lists-diff+xml\0"
	"application/route-apd+xml\0"
	"application/route-usd+xml\0"
	"application/rpki-ghostbusters\0"
	"application/rpki-manifest\0"
	"application/rpki-roa\0"
	"application/rsd+xml\0"
	"application/rss+xml\0"
	"application/rtf\0"
	"application/sbml+xml\0"
	"application/scvp-cv-request\0"
	"application/scvp-cv-response\0"
	"application/scvp-vp-request\0"
	"application/scvp-vp-response\0"
	"application/sdp\0"
	"application/senml+xml\0"
	"application/sensml+xml\0"
	"application/set-payment-initiation\0"
	"application/set-registration-initiation\0"
	"application/shf+xml\0"
	"application/smil+xml\0"
	"application/sparql-query\0"
	"application/sparql-results+xml\0"
	"application/srgs\0"
	"application/srgs+xml\0"
	"application/sru+xml\0"
	"application/ssdl+xml\0"
	"application/ssml+xml\0"
	"application/swid+xml\0"
	"application/tei+xml\0"
	"application/thraud+xml\0"
	"application/timestamped-data\0"
	"application/trig\0"
	"application/ttml+xml\0"
	"application/ubjson\0"
	"application/urc-ressheet+xml\0"
	"application/urc-targetdesc+xml\0"
	"application/vnd.1000minds.decision-model+xml\0"
	"application/vnd.3gpp.pic-bw-large\0"
	"application/vnd.3gpp.pic-bw-small\0"
	"application/vnd.3gpp.pic-bw-var\0"
	"application/vnd.3gpp2.tcap\0"
	"application/vnd.3m.post-it-notes\0"
	"application/vnd.accpac.simply.aso\0"
	"application/vnd.acucobol\0"
	"application/vnd.acucorp\0"
	"application/vnd.adobe.air-application-installer-package+zip\0"
	"application/vnd.adobe.formscentral.fcdt\0"
	"application/vnd.adobe.fxp\0"
	"application/vnd.adobe.xdp+xml\0"
	"application/vnd.age\0"
	"application/vnd.ahead.space\0"
	"application/vnd.airzip.filesecure.azf\0"
	"application/vnd.airzip.filesecure.azs\0"
	"application/vnd.amazon.ebook\0"
	"application/vnd.americandynamics.acc\0"
	"application/vnd.amiga.ami\0"
	"application/vnd.android.package-archive\0"
	"application/vnd.anser-web-certificate-issue-initiation\0"
	"application/vnd.anser-web-funds-transfer-initiation\0"
	"application/vnd.antix.game-component\0"
	"application/vnd.apache.arrow.file\0"
	"application/vnd.apache.parquet\0"
	"application/vnd.apple.installer+xml\0"
	"application/vnd.apple.mpegurl\0"
	"application/vnd.apple.numbers\0"
	"application/vnd.apple.pages\0"
	"application/vnd.apple.pkpass\0"
	"application/vnd.aristanetworks.swi\0"
	"application/vnd.astraea-software.iota\0"
	"application/vnd.audiograph\0"
	"application/vnd.autodesk.fbx\0"
	"application/vnd.balsamiq.bmml+xml\0"
	"application/vnd.blueice.multipass\0"
	"application/vnd.bmi\0"
	"application/vnd.chemdraw+xml\0"
	"application/vnd.chipnuts.karaoke-mmd\0"
	"application/vnd.cinderella\0"
	"application/vnd.citationstyles.style+xml\0"
	"application/vnd.claymore\0"
	"application/vnd.cloanto.rp9\0"
	"application/vnd.clonk.c4group\0"
	"application/vnd.cluetrust.cartomobile-config\0"
	"application/vnd.cluetrust.cartomobile-config-pkg\0"
	"application/vnd.commonspace\0"
	"application/vnd.contact.cmsg\0"
	"application/vnd.cosmocaller\0"
	"application/vnd.crick.clicker\0"
	"application/vnd.crick.clicker.keyboard\0"
	"application/vnd.crick.clicker.palette\0"
	"application/vnd.crick.clicker.template\0"
	"application/vnd.crick.clicker.wordbank\0"
	"application/vnd.criticaltools.wbs+xml\0"
	"application/vnd.cups-ppd\0"
	"application/vnd.curl.pcurl\0"
	"application/vnd.dart\0"
	"application/vnd.data-vision.rdz\0"
	"application/vnd.dbf\0"
	"application/vnd.dcmp+xml\0"
	"application/vnd.debian.binary-package\0"
	"application/vnd.dece.data\0"
	"application/vnd.dece.ttml+xml\0"
	"application/vnd.dece.unspecified\0"
	"application/vnd.dece.zip\0"
	"application/vnd.denovo.fcselayout-link\0"
	"application/vnd.dolby.mlp\0"
	"application/vnd.dpgraph\0"
	"application/vnd.dreamfactory\0"
	"application/vnd.ds-keypoint\0"
	"application/vnd.dvb.ait\0"
	"application/vnd.dvb.service\0"
	"application/vnd.dynageo\0"
	"application/vnd.enliven\0"
	"application/vnd.epson.esf\0"
	"application/vnd.epson.msf\0"
	"application/vnd.epson.quickanime\0"
	"application/vnd.epson.salt\0"
	"application/vnd.epson.ssf\0"
	"application/vnd.eszigno3+xml\0"
	"application/vnd.ezpix-album\0"
	"application/vnd.ezpix-package\0"
	"application/vnd.fdsn.mseed\0"
	"application/vnd.fdsn.seed\0"
	"application/vnd.flographit\0"
	"application/vnd.fluxtime.clip\0"
	"application/vnd.framemaker\0"
	"application/vnd.frogans.fnc\0"
	"application/vnd.frogans.ltf\0"
	"application/vnd.fsc.weblaunch\0"
	"application/vnd.fujitsu.oasys\0"
	"application/vnd.fujitsu.oasys2\0"
	"application/vnd.fujitsu.oasys3\0"
	"application/vnd.fujitsu.oasysgp\0"
	"application/vnd.fujitsu.oasysprs\0"
	"application/vnd.fujixerox.ddd\0"
	"application/vnd.fujixerox.docuworks\0"
	"application/vnd.fujixerox.docuworks.binder\0"
	"application/vnd.fuzzysheet\0"
	"application/vnd.genomatix.tuxedo\0"
	"application/vnd.geogebra.file\0"
	"application/vnd.geogebra.slides\0"
	"application/vnd.geogebra.tool\0"
	"application/vnd.geometry-explorer\0"
	"application/vnd.geonext\0"
	"application/vnd.geoplan\0"
	"application/vnd.geospace\0"
	"application/vnd.gmx\0"
	"application/vnd.google-apps.document\0"
	"application/vnd.google-apps.drawing\0"
	"application/vnd.google-apps.form\0"
	"application/vnd.google-apps.jam\0"
	"application/vnd.google-apps.map\0"
	"application/vnd.google-apps.presentation\0"
	"application/vnd.google-apps.script\0"
	"application/vnd.google-apps.site\0"
	"application/vnd.google-apps.spreadsheet\0"
	"application/vnd.google-earth.kml+xml\0"
	"application/vnd.google-earth.kmz\0"
	"application/vnd.gov.sk.xmldatacontainer+xml\0"
	"application/vnd.grafeq\0"
	"application/vnd.groove-account\0"
	"application/vnd.groove-help\0"
	"application/vnd.groove-identity-message\0"
	"application/vnd.groove-injector\0"
	"application/vnd.groove-tool-message\0"
	"application/vnd.groove-tool-template\0"
	"application/vnd.groove-vcard\0"
	"application/vnd.hal+xml\0"
	"application/vnd.handheld-entertainment+xml\0"
	"application/vnd.hbci\0"
	"application/vnd.hp-hpgl\0"
	"application/vnd.hp-hpid\0"
	"application/vnd.hp-hps\0"
	"application/vnd.hp-jlyt\0"
	"application/vnd.hp-pcl\0"
	"application/vnd.hp-pclxl\0"
	"application/vnd.hydrostatix.sof-data\0"
	"application/vnd.ibm.minipay\0"
	"application/vnd.ibm.modcap\0"
	"application/vnd.ibm.rights-management\0"
	"application/vnd.iccprofile\0"
	"application/vnd.igloader\0"
	"application/vnd.immervision-ivp\0"
	"application/vnd.immervision-ivu\0"
	"application/vnd.insors.igm\0"
	"application/vnd.intercon.formnet\0"
	"application/vnd.intergeo\0"
	"application/vnd.intu.qbo\0"
	"application/vnd.intu.qfx\0"
	"application/vnd.ipunplugged.rcprofile\0"
	"application/vnd.irepository.package+xml\0"
	"application/vnd.is-xpr\0"
	"application/vnd.isac.fcs\0"
	"application/vnd.jcp.javame.midlet-rms\0"
	"application/vnd.jisp\0"
	"application/vnd.joost.joda-archive\0"
	"application/vnd.kahootz\0"
	"application/vnd.kde.karbon\0"
	"application/vnd.kde.kchart\0"
	"application/vnd.kde.kformula\0"
	"application/vnd.kde.kivio\0"
	"application/vnd.kde.kontour\0"
	"application/vnd.kde.kpresenter\0"
	"application/vnd.kde.kspread\0"
	"application/vnd.kde.kword\0"
	"application/vnd.kenameaapp\0"
	"application/vnd.kidspiration\0"
	"application/vnd.kinar\0"
	"application/vnd.koan\0"
	"application/vnd.kodak-descriptor\0"
	"application/vnd.las.las+xml\0"
	"application/vnd.llamagraphics.life-balance.desktop\0"
	"application/vnd.llamagraphics.life-balance.exchange+xml\0"
	"application/vnd.lotus-1-2-3\0"
	"application/vnd.lotus-approach\0"
	"application/vnd.lotus-notes\0"
	"application/vnd.lotus-wordpro\0"
	"application/vnd.macports.portpkg\0"
	"application/vnd.mapbox-vector-tile\0"
	"application/vnd.mcd\0"
	"application/vnd.medcalcdata\0"
	"application/vnd.mediastation.cdkey\0"
	"application/vnd.mfer\0"
	"application/vnd.mfmp\0"
	"application/vnd.micrografx.flo\0"
	"application/vnd.micrografx.igx\0"
	"application/vnd.mif\0"
	"application/vnd.mobius.daf\0"
	"application/vnd.mobius.mbk\0"
	"application/vnd.mobius.mqy\0"
	"application/vnd.mobius.msl\0"
	"application/vnd.mobius.plc\0"
	"application/vnd.mobius.txf\0"
	"application/vnd.mophun.application\0"
	"application/vnd.mophun.certificate\0"
	"application/vnd.mozilla.xul+xml\0"
	"application/vnd.ms-cab-compressed\0"
	"application/vnd.ms-excel\0"
	"application/vnd.ms-excel.addin.macroenabled.12\0"
	"application/vnd.ms-excel.sheet.binary.macroenabled.12\0"
	"application/vnd.ms-excel.sheet.macroenabled.12\0"
	"application/vnd.ms-excel.template.macroenabled.12\0"
	"application/vnd.ms-fontobject\0"
	"application/vnd.ms-htmlhelp\0"
	"application/vnd.ms-ims\0"
	"application/vnd.ms-lrm\0"
	"application/vnd.ms-officetheme\0"
	"application/vnd.ms-outlook\0"
	"application/vnd.ms-powerpoint\0"
	"application/vnd.ms-powerpoint.addin.macroenabled.12\0"
	"application/vnd.ms-powerpoint.presentation.macroenabled.12\0"
	"application/vnd.ms-powerpoint.slide.macroenabled.12\0"
	"application/vnd.ms-powerpoint.slideshow.macroenabled.12\0"
	"application/vnd.ms-powerpoint.template.macroenabled.12\0"
	"application/vnd.ms-project\0"
	"application/vnd.ms-visio.viewer\0"
	"application/vnd.ms-word.document.macroenabled.12\0"
	"application/vnd.ms-word.template.macroenabled.12\0"
	"application/vnd.ms-works\0"
	"application/vnd.ms-wpl\0"
	"application/vnd.ms-xpsdocument\0"
	"application/vnd.mseq\0"
	"application/vnd.musician\0"
	"application/vnd.muvee.style\0"
	"application/vnd.mynfc\0"
	"application/vnd.nato.bindingdataobject+xml\0"
	"application/vnd.neurolanguage.nlu\0"
	"application/vnd.nitf\0"
	"application/vnd.noblenet-directory\0"
	"application/vnd.noblenet-sealer\0"
	"application/vnd.noblenet-web\0"
	"application/vnd.nokia.n-gage.data\0"
	"application/vnd.nokia.n-gage.symbian.install\0"
	"application/vnd.nokia.radio-preset\0"
	"application/vnd.nokia.radio-presets\0"
	"application/vnd.novadigm.edm\0"
	"application/vnd.novadigm.edx\0"
	"application/vnd.oasis.opendocument.chart\0"
	"application/vnd.oasis.opendocument.chart-template\0"
	"application/vnd.oasis.opendocument.database\0"
	"application/vnd.oasis.opendocument.formula\0"
	"application/vnd.oasis.opendocument.formula-template\0"
	"application/vnd.oasis.opendocument.graphics\0"
	"application/vnd.oasis.opendocument.graphics-template\0"
	"application/vnd.oasis.opendocument.image\0"
	"application/vnd.oasis.opendocument.image-template\0"
	"application/vnd.oasis.opendocument.presentation\0"
	"application/vnd.oasis.opendocument.presentation-template\0"
	"application/vnd.oasis.opendocument.spreadsheet\0"
	"application/vnd.oasis.opendocument.spreadsheet-template\0"
	"application/vnd.oasis.opendocument.text\0"
	"application/vnd.oasis.opendocument.text-master\0"
	"application/vnd.oasis.opendocument.text-template\0"
	"application/vnd.oasis.opendocument.text-web\0"
	"application/vnd.olpc-sugar\0"
	"application/vnd.oma.dd2+xml\0"
	"application/vnd.openblox.game+xml\0"
	"application/vnd.openofficeorg.extension\0"
	"application/vnd.openstreetmap.data+xml\0"
	"application/vnd.openxmlformats-officedocument.presentationml.presentation\0"
	"application/vnd.openxmlformats-officedocument.presentationml.slide\0"
	"application/vnd.openxmlformats-officedocument.presentationml.slideshow\0"
	"application/vnd.openxmlformats-officedocument.presentationml.template\0"
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet\0"
	"application/vnd.openxmlformats-officedocument.spreadsheetml.template\0"
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document\0"
	"application/vnd.openxmlformats-officedocument.wordprocessingml.template\0"
	"application/vnd.osgeo.mapguide.package\0"
	"application/vnd.osgi.dp\0"
	"application/vnd.osgi.subsystem\0"
	"application/vnd.palm\0"
	"application/vnd.pawaafile\0"
	"application/vnd.pg.osasli\0"
	"application/vnd.picsel\0"
	"application/vnd.pocketlearn\0"
	"application/vnd.powerbuilder6\0"
	"application/vnd.procrate.brushset\0"
	"application/vnd.procreate.brush\0"
	"application/vnd.procreate.dream\0"
	"application/vnd.proteus.magazine\0"
	"application/vnd.publishare-delta-tree\0"
	"application/vnd.pvi.ptid1\0"
	"application/vnd.pwg-xhtml-print+xml\0"
	"application/vnd.quark.quarkxpress\0"
	"application/vnd.rar\0"
	"application/vnd.realvnc.bed\0"
	"application/vnd.recordare.musicxml\0"
	"application/vnd.recordare.musicxml+xml\0"
	"application/vnd.rig.cryptonote\0"
	"application/vnd.rim.cod\0"
	"application/vnd.rn-realmedia\0"
	"application/vnd.rn-realmedia-vbr\0"
	"application/vnd.route66.link66+xml\0"
	"application/vnd.sema\0"
	"application/vnd.semd\0"
	"application/vnd.semf\0"
	"application/vnd.shana.informed.formdata\0"
	"application/vnd.shana.informed.formtemplate\0"
	"application/vnd.shana.informed.interchange\0"
	"application/vnd.shana.informed.package\0"
	"application/vnd.simtech-mindmapper\0"
	"application/vnd.smaf\0"
	"application/vnd.smart.teacher\0"
	"application/vnd.software602.filler.form+xml\0"
	"application/vnd.solent.sdkm+xml\0"
	"application/vnd.spotfire.dxp\0"
	"application/vnd.spotfire.sfs\0"
	"application/vnd.sqlite3\0"
	"application/vnd.stardivision.calc\0"
	"application/vnd.stardivision.draw\0"
	"application/vnd.stardivision.impress\0"
	"application/vnd.stardivision.math\0"
	"application/vnd.stardivision.writer\0"
	"application/vnd.stardivision.writer-global\0"
	"application/vnd.stepmania.package\0"
	"application/vnd.sun.wadl+xml\0"
	"application/vnd.sun.xml.calc\0"
	"application/vnd.sun.xml.calc.template\0"
	"application/vnd.sun.xml.draw\0"
	"application/vnd.sun.xml.impress\0"
	"application/vnd.sun.xml.impress.template\0"
	"application/vnd.sun.xml.math\0"
	"application/vnd.sun.xml.writer\0"
	"application/vnd.sun.xml.writer.global\0"
	"application/vnd.sun.xml.writer.template\0"
	"application/vnd.sus-calendar\0"
	"application/vnd.svd\0"
	"application/vnd.symbian.install\0"
	"application/vnd.syncml+xml\0"
	"application/vnd.syncml.dm+wbxml\0"
	"application/vnd.syncml.dm+xml\0"
	"application/vnd.syncml.dmddf+xml\0"
	"application/vnd.tao.intent-module-archive\0"
	"application/vnd.tcpdump.pcap\0"
	"application/vnd.tmobile-livetv\0"
	"application/vnd.trid.tpt\0"
	"application/vnd.triscape.mxs\0"
	"application/vnd.ufdl\0"
	"application/vnd.uiq.theme\0"
	"application/vnd.umajin\0"
	"application/vnd.unity\0"
	"application/vnd.uoml+xml\0"
	"application/vnd.vcx\0"
	"application/vnd.visio\0"
	"application/vnd.vsf\0"
	"application/vnd.wap.wbxml\0"
	"application/vnd.wap.wmlc\0"
	"application/vnd.wap.wmlscriptc\0"
	"application/vnd.webturbo\0"
	"application/vnd.wolfram.player\0"
	"application/vnd.wordperfect\0"
	"application/vnd.wqd\0"
	"application/vnd.wt.stf\0"
	"application/vnd.xara\0"
	"application/vnd.xfdl\0"
	"application/vnd.yamaha.hv-dic\0"
	"application/vnd.yamaha.hv-script\0"
	"application/vnd.yamaha.hv-voice\0"
	"application/vnd.yamaha.openscoreformat\0"
	"application/vnd.yamaha.openscoreformat.osfpvg+xml\0"
	"application/vnd.yamaha.smaf-audio\0"
	"application/vnd.yamaha.smaf-phrase\0"
	"application/vnd.zul\0"
	"application/vnd.zzazz.deck+xml\0"
	"application/voicexml+xml\0"
	"application/wasm\0"
	"application/watcherinfo+xml\0"
	"application/widget\0"
	"application/winhlp\0"
	"application/wsdl+xml\0"
	"application/wspolicy+xml\0"
	"application/x-7z-compressed\0"
	"application/x-abiword\0"
	"application/x-ace-compressed\0"
	"application/x-arj\0"
	"application/x-authorware-bin\0"
	"application/x-authorware-map\0"
	"application/x-authorware-seg\0"
	"application/x-bcpio\0"
	"application/x-bittorrent\0"
	"application/x-blender\0"
	"application/x-blorb\0"
	"application/x-bzip\0"
	"application/x-bzip2\0"
	"application/x-cbr\0"
	"application/x-cdlink\0"
	"application/x-cfs-compressed\0"
	"application/x-chat\0"
	"application/x-chess-pgn\0"
	"application/x-chrome-extension\0"
	"application/x-cocoa\0"
	"application/x-conference\0"
	"application/x-cpio\0"
	"application/x-dgc-compressed\0"
	"application/x-director\0"
	"application/x-doom\0"
	"application/x-dtbncx+xml\0"
	"application/x-dtbook+xml\0"
	"application/x-dvi\0"
	"application/x-envoy\0"
	"application/x-eva\0"
	"application/x-font-bdf\0"
	"application/x-font-ghostscript\0"
	"application/x-font-linux-psf\0"
	"application/x-font-pcf\0"
	"application/x-font-snf\0"
	"application/x-font-type1\0"
	"application/x-freearc\0"
	"application/x-futuresplash\0"
	"application/x-gca-compressed\0"
	"application/x-glulx\0"
	"application/x-gnumeric\0"
	"application/x-gramps-xml\0"
	"application/x-gtar\0"
	"application/x-hdf\0"
	"application/x-ipynb+json\0"
	"application/x-java-archive-diff\0"
	"application/x-java-jnlp-file\0"
	"application/x-keepass2\0"
	"application/x-lua-bytecode\0"
	"application/x-lzh-compressed\0"
	"application/x-mie\0"
	"application/x-mobipocket-ebook\0"
	"application/x-ms-shortcut\0"
	"application/x-ms-wmd\0"
	"application/x-ms-wmz\0"
	"application/x-ms-xbap\0"
	"application/x-msaccess\0"
	"application/x-msbinder\0"
	"application/x-mscardfile\0"
	"application/x-msclip\0"
	"application/x-msmediaview\0"
	"application/x-msmetafile\0"
	"application/x-msmoney\0"
	"application/x-msschedule\0"
	"application/x-msterminal\0"
	"application/x-mswrite\0"
	"application/x-netcdf\0"
	"application/x-ns-proxy-autoconfig\0"
	"application/x-nzb\0"
	"application/x-pem-file\0"
	"application/x-pkcs12\0"
	"application/x-pkcs7-certificates\0"
	"application/x-pkcs7-certreqresp\0"
	"application/x-research-info-systems\0"
	"application/x-rpm\0"
	"application/x-sea\0"
	"application/x-shar\0"
	"application/x-shockwave-flash\0"
	"application/x-silverlight-app\0"
	"application/x-stuffit\0"
	"application/x-stuffitx\0"
	"application/x-sv4cpio\0"
	"application/x-sv4crc\0"
	"application/x-t3vm-image\0"
	"application/x-tads\0"
	"application/x-tar\0"
	"application/x-tex-tfm\0"
	"application/x-ustar\0"
	"application/x-virtualbox-hdd\0"
	"application/x-virtualbox-ova\0"
	"application/x-virtualbox-ovf\0"
	"application/x-virtualbox-vbox\0"
	"application/x-virtualbox-vbox-extpack\0"
	"application/x-virtualbox-vdi\0"
	"application/x-virtualbox-vhd\0"
	"application/x-virtualbox-vmdk\0"
	"application/x-web-app-manifest+json\0"
	"application/x-x509-ca-cert\0"
	"application/x-xfig\0"
	"application/x-xpinstall\0"
	"application/x-xz\0"
	"application/x-zmachine\0"
	"application/xaml+xml\0"
	"application/xcap-att+xml\0"
	"application/xcap-caps+xml\0"
	"application/xcap-diff+xml\0"
	"application/xcap-el+xml\0"
	"application/xcap-ns+xml\0"
	"application/xenc+xml\0"
	"application/xfdf\0"
	"application/xhtml+xml\0"
	"application/xliff+xml\0"
	"application/xml\0"
	"application/xml-dtd\0"
	"application/xop+xml\0"
	"application/xproc+xml\0"
	"application/xslt+xml\0"
	"application/xspf+xml\0"
	"application/xv+xml\0"
	"application/yaml\0"
	"application/yin+xml\0"
	"application/zip\0"
	"application/zip+dotlottie\0"
	"application/zstd\0"
	"audio/aac\0"
	"audio/ac3\0"
	"audio/adpcm\0"
	"audio/amr\0"
	"audio/basic\0"
	"audio/flac\0"
	"audio/midi\0"
	"audio/mobile-xmf\0"
	"audio/mp4\0"
	"audio/mpeg\0"
	"audio/ogg\0"
	"audio/s3m\0"
	"audio/silk\0"
	"audio/vnd.dece.audio\0"
	"audio/vnd.digital-winds\0"
	"audio/vnd.dra\0"
	"audio/vnd.dts\0"
	"audio/vnd.dts.hd\0"
	"audio/vnd.lucent.voice\0"
	"audio/vnd.ms-playready.media.pya\0"
	"audio/vnd.nuera.ecelp4800\0"
	"audio/vnd.nuera.ecelp7470\0"
	"audio/vnd.nuera.ecelp9600\0"
	"audio/vnd.rip\0"
	"audio/wav\0"
	"audio/webm\0"
	"audio/x-aiff\0"
	"audio/x-caf\0"
	"audio/x-matroska\0"
	"audio/x-mpegurl\0"
	"audio/x-ms-wax\0"
	"audio/x-ms-wma\0"
	"audio/x-pn-realaudio\0"
	"audio/x-pn-realaudio-plugin\0"
	"audio/x-scpls\0"
	"audio/xm\0"
	"chemical/x-cdx\0"
	"chemical/x-cif\0"
	"chemical/x-cmdf\0"
	"chemical/x-cml\0"
	"chemical/x-csml\0"
	"chemical/x-xyz\0"
	"font/collection\0"
	"font/otf\0"
	"font/ttf\0"
	"font/woff\0"
	"font/woff2\0"
	"image/aces\0"
	"image/apng\0"
	"image/avci\0"
	"image/avcs\0"
	"image/avif\0"
	"image/bmp\0"
	"image/cgm\0"
	"image/dicom-rle\0"
	"image/dpx\0"
	"image/emf\0"
	"image/g3fax\0"
	"image/gif\0"
	"image/heic\0"
	"image/heic-sequence\0"
	"image/heif\0"
	"image/heif-sequence\0"
	"image/hej2k\0"
	"image/ief\0"
	"image/jaii\0"
	"image/jais\0"
	"image/jls\0"
	"image/jp2\0"
	"image/jpeg\0"
	"image/jph\0"
	"image/jphc\0"
	"image/jpm\0"
	"image/jpx\0"
	"image/jxl\0"
	"image/jxr\0"
	"image/jxra\0"
	"image/jxrs\0"
	"image/jxs\0"
	"image/jxsc\0"
	"image/jxsi\0"
	"image/jxss\0"
	"image/ktx\0"
	"image/ktx2\0"
	"image/png\0"
	"image/prs.btif\0"
	"image/prs.pti\0"
	"image/sgi\0"
	"image/svg+xml\0"
	"image/t38\0"
	"image/tiff\0"
	"image/tiff-fx\0"
	"image/vnd.adobe.photoshop\0"
	"image/vnd.airzip.accelerator.azv\0"
	"image/vnd.dece.graphic\0"
	"image/vnd.djvu\0"
	"image/vnd.dwg\0"
	"image/vnd.dxf\0"
	"image/vnd.fastbidsheet\0"
	"image/vnd.fpx\0"
	"image/vnd.fst\0"
	"image/vnd.fujixerox.edmics-mmr\0"
	"image/vnd.fujixerox.edmics-rlc\0"
	"image/vnd.microsoft.icon\0"
	"image/vnd.ms-dds\0"
	"image/vnd.ms-modi\0"
	"image/vnd.ms-photo\0"
	"image/vnd.net-fpx\0"
	"image/vnd.pco.b16\0"
	"image/vnd.tencent.tap\0"
	"image/vnd.valve.source.texture\0"
	"image/vnd.wap.wbmp\0"
	"image/vnd.xiff\0"
	"image/vnd.zbrush.pcx\0"
	"image/webp\0"
	"image/wmf\0"
	"image/x-3ds\0"
	"image/x-adobe-dng\0"
	"image/x-cmu-raster\0"
	"image/x-cmx\0"
	"image/x-freehand\0"
	"image/x-jng\0"
	"image/x-mrsid-image\0"
	"image/x-pict\0"
	"image/x-portable-anymap\0"
	"image/x-portable-bitmap\0"
	"image/x-portable-graymap\0"
	"image/x-portable-pixmap\0"
	"image/x-rgb\0"
	"image/x-tga\0"
	"image/x-xbitmap\0"
	"image/x-xpixmap\0"
	"image/x-xwindowdump\0"
	"message/disposition-notification\0"
	"message/global\0"
	"message/global-delivery-status\0"
	"message/global-disposition-notification\0"
	"message/global-headers\0"
	"message/rfc822\0"
	"message/vnd.wfa.wsc\0"
	"model/3mf\0"
	"model/gltf+json\0"
	"model/gltf-binary\0"
	"model/iges\0"
	"model/jt\0"
	"model/mesh\0"
	"model/mtl\0"
	"model/obj\0"
	"model/step\0"
	"model/step+xml\0"
	"model/step+zip\0"
	"model/step-xml+zip\0"
	"model/stl\0"
	"model/u3d\0"
	"model/vnd.bary\0"
	"model/vnd.cld\0"
	"model/vnd.collada+xml\0"
	"model/vnd.dwf\0"
	"model/vnd.gdl\0"
	"model/vnd.gtw\0"
	"model/vnd.opengex\0"
	"model/vnd.parasolid.transmit.binary\0"
	"model/vnd.parasolid.transmit.text\0"
	"model/vnd.pytha.pyox\0"
	"model/vnd.sap.vds\0"
	"model/vnd.usda\0"
	"model/vnd.usdz+zip\0"
	"model/vnd.valve.source.compiled-map\0"
	"model/vnd.vtu\0"
	"model/vrml\0"
	"model/x3d+binary\0"
	"model/x3d+fastinfoset\0"
	"model/x3d+vrml\0"
	"model/x3d+xml\0"
	"model/x3d-vrml\0"
	"text/cache-manifest\0"
	"text/calendar\0"
	"text/css\0"
	"text/csv\0"
	"text/html\0"
	"text/javascript\0"
	"text/n3\0"
	"text/plain\0"
	"text/prs.lines.tag\0"
	"text/richtext\0"
	"text/sgml\0"
	"text/shex\0"
	"text/spdx\0"
	"text/tab-separated-values\0"
	"text/troff\0"
	"text/turtle\0"
	"text/uri-list\0"
	"text/vcard\0"
	"text/vnd.curl\0"
	"text/vnd.curl.dcurl\0"
	"text/vnd.curl.mcurl\0"
	"text/vnd.curl.scurl\0"
	"text/vnd.familysearch.gedcom\0"
	"text/vnd.fly\0"
	"text/vnd.fmi.flexstor\0"
	"text/vnd.graphviz\0"
	"text/vnd.in3d.3dml\0"
	"text/vnd.sun.j2me.app-descriptor\0"
	"text/vnd.wap.wml\0"
	"text/vnd.wap.wmlscript\0"
	"text/vtt\0"
	"text/wgsl\0"
	"text/x-component\0"
	"text/x-opml\0"
	"text/x-setext\0"
	"text/x-sfv\0"
	"text/x-suse-ymp\0"
	"text/x-uuencode\0"
	"text/x-vcalendar\0"
	"video/3gpp\0"
	"video/3gpp2\0"
	"video/h261\0"
	"video/h263\0"
	"video/h264\0"
	"video/iso.segment\0"
	"video/jpeg\0"
	"video/matroska\0"
	"video/mj2\0"
	"video/mp2t\0"
	"video/mp4\0"
	"video/mpeg\0"
	"video/ogg\0"
	"video/quicktime\0"
	"video/vnd.dece.hd\0"
	"video/vnd.dece.mobile\0"
	"video/vnd.dece.pd\0"
	"video/vnd.dece.sd\0"
	"video/vnd.dece.video\0"
	"video/vnd.dvb.file\0"
	"video/vnd.fvt\0"
	"video/vnd.mpegurl\0"
	"video/vnd.ms-playready.media.pyv\0"
	"video/vnd.uvvu.mp4\0"
	"video/vnd.vivo\0"
	"video/webm\0"
	"video/x-f4v\0"
	"video/x-fli\0"
	"video/x-flv\0"
	"video/x-matroska\0"
	"video/x-mng\0"
	"video/x-ms-asf\0"
	"video/x-ms-vob\0"
	"video/x-ms-wm\0"
	"video/x-ms-wmv\0"
	"video/x-ms-wmx\0"
	"video/x-ms-wvx\0"
	"video/x-msvideo\0"
	"video/x-sgi-movie\0"
	"video/x-smv\0"
	"x-conference/x-cooltalk\0";

static const struct table_entry {
	uint16_t extension, type;
} table[] = {
	{0, 8976}, /* 123 */
	{4, 3503}, /* 1km */
	{8, 20943}, /* 210 */
	{12, 21811}, /* 3dml */
	{17, 20375}, /* 3ds */
	{21, 22036}, /* 3g2 */
	{25, 22025}, /* 3gp */
	{29, 22025}, /* 3gpp */
	{34, 20848}, /* 3mf */
	{38, 15719}, /* 7z */
	{41, 15816}, /* aab */
	{45, 18667}, /* aac */
	{49, 15845}, /* aam */
	{53, 15874}, /* aas */
	{57, 15747}, /* abw */
	{61, 18677}, /* ac3 */
	{65, 4100}, /* acc */
	{69, 15769}, /* ace */
	{73, 3742}, /* acu */
	{77, 3767}, /* acutc */
	{83, 18687}, /* adp */
	{87, 18667}, /* adts */
	{92, 4638}, /* aep */
	{96, 16541}, /* afm */
	{100, 7927}, /* afp */
	{104, 3947}, /* age */
	{108, 3967}, /* ahead */
	{114, 2356}, /* ai */
	{117, 19071}, /* aif */
	{121, 19071}, /* aifc */
	{126, 19071}, /* aiff */
	{131, 3791}, /* air */
	{135, 5849}, /* ait */
	{139, 4137}, /* ami */
	{143, 287}, /* aml */
	{147, 320}, /* amlx */
	{152, 18699}, /* amr */
	{156, 4163}, /* apk */
	{160, 19389}, /* apng */
	{165, 21421}, /* appcache */
	{174, 25}, /* appinstaller */
	{187, 73}, /* appx */
	{192, 90}, /* appxbundle */
	{203, 9004}, /* apr */
	{207, 16566}, /* arc */
	{211, 15798}, /* arj */
	{215, 4347}, /* arrow */
	{221, 21507}, /* asc */
	{225, 22484}, /* asf */
	{229, 21507}, /* asm */
	{233, 3708}, /* aso */
	{237, 22484}, /* asx */
	{241, 3767}, /* atc */
	{245, 113}, /* atom */
	{250, 134}, /* atomcat */
	{258, 158}, /* atomdeleted */
	{270, 186}, /* atomsvc */
	{278, 4310}, /* atx */
	{282, 18709}, /* au */
	{285, 19400}, /* avci */
	{290, 19411}, /* avcs */
	{295, 22573}, /* avi */
	{299, 19422}, /* avif */
	{304, 50}, /* aw */
	{307, 3995}, /* azf */
	{311, 4033}, /* azs */
	{315, 19919}, /* azv */
	{319, 4071}, /* azw */
	{323, 20228}, /* b16 */
	{327, 21023}, /* bary */
	{332, 21507}, /* bat */
	{336, 15903}, /* bcpio */
	{342, 16412}, /* bdf */
	{346, 14580}, /* bdm */
	{350, 10687}, /* bdo */
	{354, 354}, /* bdoc */
	{359, 13157}, /* bed */
	{363, 6521}, /* bh2 */
	{367, 1906}, /* bin */
	{371, 15970}, /* blb */
	{375, 15948}, /* blend */
	{381, 15970}, /* blorb */
	{387, 4762}, /* bmi */
	{391, 4694}, /* bmml */
	{396, 19433}, /* bmp */
	{400, 16009}, /* boz */
	{404, 1906}, /* bpk */
	{408, 1906}, /* br */
	{411, 12906}, /* brush */
	{417, 12872}, /* brushset */
	{426, 21277}, /* bsp */
	{430, 19805}, /* btf */
	{434, 19805}, /* btif */
	{439, 15990}, /* bz */
	{442, 16009}, /* bz2 */
	{446, 21507}, /* c */
	{448, 4999}, /* c11amc */
	{455, 5044}, /* c11amz */
	{462, 4969}, /* c4d */
	{466, 4969}, /* c4f */
	{470, 4969}, /* c4g */
	{474, 4969}, /* c4p */
	{478, 4969}, /* c4u */
	{482, 9632}, /* cab */
	{486, 19084}, /* caf */
	{490, 14717}, /* cap */
	{494, 16029}, /* cb7 */
	{498, 16029}, /* cba */
	{502, 396}, /* cbor */
	{507, 16029}, /* cbr */
	{511, 16029}, /* cbt */
	{515, 16029}, /* cbz */
	{519, 21507}, /* cc */
	{522, 16171}, /* cco */
	{526, 16264}, /* cct */
	{530, 413}, /* ccxml */
	{536, 5121}, /* cdbcmsg */
	{544, 17290}, /* cdf */
	{548, 435}, /* cdfx */
	{553, 9209}, /* cdkey */
	{559, 456}, /* cdmia */
	{565, 484}, /* cdmic */
	{571, 511}, /* cdmid */
	{577, 535}, /* cdmio */
	{583, 559}, /* cdmiq */
	{589, 19231}, /* cdx */
	{593, 4782}, /* cdxml */
	{599, 4848}, /* cdy */
	{603, 2268}, /* cer */
	{607, 16068}, /* cfs */
	{611, 19443}, /* cgm */
	{615, 16097}, /* chat */
	{620, 9919}, /* chm */
	{624, 8514}, /* chrt */
	{629, 19246}, /* cif */
	{633, 4203}, /* cii */
	{637, 21483}, /* cjs */
	{641, 4916}, /* cla */
	{645, 21038}, /* cld */
	{649, 5208}, /* clkk */
	{654, 5247}, /* clkp */
	{659, 5285}, /* clkt */
	{664, 5324}, /* clkw */
	{669, 5178}, /* clkx */
	{674, 17124}, /* clp */
	{678, 5150}, /* cmc */
	{682, 19261}, /* cmdf */
	{687, 19277}, /* cml */
	{691, 20424}, /* cmx */
	{695, 13290}, /* cod */
	{699, 21507}, /* coffee */
	{706, 21507}, /* conf */
	{711, 16216}, /* cpio */
	{716, 582}, /* cpl */
	{720, 21507}, /* cpp */
	{724, 1364}, /* cpt */
	{728, 17099}, /* crd */
	{732, 2290}, /* crl */
	{736, 18094}, /* crt */
	{740, 16140}, /* crx */
	{744, 13259}, /* cryptonote */
	{755, 21507}, /* csh */
	{759, 4875}, /* csl */
	{763, 19292}, /* csml */
	{768, 5093}, /* csp */
	{772, 21455}, /* css */
	{776, 16264}, /* cst */
	{780, 21464}, /* csv */
	{784, 602}, /* cu */
	{787, 21655}, /* curl */
	{792, 623}, /* cwl */
	{796, 2406}, /* cww */
	{800, 16264}, /* cxt */
	{804, 21507}, /* cxx */
	{808, 21052}, /* dae */
	{812, 9368}, /* daf */
	{816, 5453}, /* dart */
	{821, 6201}, /* dataless */
	{830, 660}, /* davmount */
	{839, 5506}, /* dbf */
	{843, 703}, /* dbk */
	{847, 685}, /* dcm */
	{851, 5526}, /* dcmp */
	{856, 16264}, /* dcr */
	{860, 21669}, /* dcurl */
	{866, 11922}, /* dd2 */
	{870, 6554}, /* ddd */
	{874, 14642}, /* ddf */
	{878, 20156}, /* dds */
	{882, 5551}, /* deb */
	{886, 21507}, /* def */
	{890, 18094}, /* der */
	{894, 5792}, /* dfac */
	{899, 16235}, /* dgc */
	{903, 19433}, /* dib */
	{907, 21507}, /* dic */
	{911, 21507}, /* diff */
	{916, 16264}, /* dir */
	{920, 20671}, /* disposition-notification */
	{945, 19975}, /* djv */
	{949, 19975}, /* djvu */
	{954, 1906}, /* dll */
	{958, 1906}, /* dmg */
	{962, 14717}, /* dmp */
	{966, 1906}, /* dms */
	{970, 20387}, /* dng */
	{974, 1829}, /* doc */
	{978, 10414}, /* docm */
	{983, 12480}, /* docx */
	{988, 10463}, /* dotm */
	{993, 12552}, /* dotx */
	{998, 12663}, /* dp */
	{1001, 5768}, /* dpg */
	{1005, 19469}, /* dpx */
	{1009, 18857}, /* dra */
	{1013, 19453}, /* drle */
	{1018, 12938}, /* drm */
	{1022, 21518}, /* dsc */
	{1026, 727}, /* dssc */
	{1031, 16331}, /* dtb */
	{1035, 18448}, /* dtd */
	{1039, 18871}, /* dts */
	{1043, 18885}, /* dtshd */
	{1049, 22290}, /* dvb */
	{1053, 16356}, /* dvi */
	{1057, 210}, /* dwd */
	{1061, 21074}, /* dwf */
	{1065, 19990}, /* dwg */
	{1069, 20004}, /* dxf */
	{1073, 13802}, /* dxp */
	{1077, 16264}, /* dxr */
	{1081, 1159}, /* ear */
	{1085, 18958}, /* ecelp4800 */
	{1095, 18984}, /* ecelp7470 */
	{1105, 19010}, /* ecelp9600 */
	{1115, 769}, /* ecma */
	{1120, 11031}, /* edm */
	{1124, 11060}, /* edx */
	{1128, 12791}, /* efif */
	{1133, 12765}, /* ei6 */
	{1137, 19479}, /* emf */
	{1141, 20813}, /* eml */
	{1145, 792}, /* emma */
	{1150, 813}, /* emotionml */
	{1160, 17171}, /* emz */
	{1164, 18833}, /* eol */
	{1168, 9889}, /* eot */
	{1172, 2356}, /* eps */
	{1176, 839}, /* epub */
	{1181, 6087}, /* es3 */
	{1185, 12687}, /* esa */
	{1189, 5949}, /* esf */
	{1193, 6087}, /* et3 */
	{1197, 21951}, /* etx */
	{1201, 16394}, /* eva */
	{1205, 16374}, /* evy */
	{1209, 1906}, /* exe */
	{1213, 860}, /* exi */
	{1217, 19378}, /* exr */
	{1221, 0}, /* ez */
	{1224, 6116}, /* ez2 */
	{1228, 6144}, /* ez3 */
	{1232, 21507}, /* f */
	{1234, 22419}, /* f4v */
	{1238, 21507}, /* f77 */
	{1242, 21507}, /* f90 */
	{1246, 20018}, /* fbs */
	{1250, 4665}, /* fbx */
	{1254, 3851}, /* fcdt */
	{1259, 8344}, /* fcs */
	{1263, 876}, /* fdf */
	{1267, 892}, /* fdt */
	{1271, 5703}, /* fe_launch */
	{1281, 6489}, /* fg5 */
	{1285, 16264}, /* fgd */
	{1289, 20436}, /* fh */
	{1292, 20436}, /* fh4 */
	{1296, 20436}, /* fh5 */
	{1300, 20436}, /* fh7 */
	{1304, 20436}, /* fhc */
	{1308, 18121}, /* fig */
	{1312, 912}, /* fits */
	{1317, 18721}, /* flac */
	{1322, 22431}, /* fli */
	{1326, 9286}, /* flo */
	{1330, 22443}, /* flv */
	{1334, 8570}, /* flw */
	{1338, 21771}, /* flx */
	{1342, 21758}, /* fly */
	{1346, 6284}, /* fm */
	{1349, 6311}, /* fnc */
	{1353, 13726}, /* fo */
	{1356, 21507}, /* for */
	{1360, 20041}, /* fpx */
	{1364, 6367}, /* fsc */
	{1368, 20055}, /* fst */
	{1372, 6254}, /* ftc */
	{1376, 4258}, /* fti */
	{1380, 22309}, /* fvt */
	{1384, 3891}, /* fxp */
	{1388, 3891}, /* fxpl */
	{1393, 6663}, /* fzs */
	{1397, 6873}, /* g2w */
	{1401, 19489}, /* g3 */
	{1404, 6897}, /* g3w */
	{1408, 7398}, /* gac */
	{1412, 17736}, /* gam */
	{1416, 2692}, /* gbr */
	{1420, 16615}, /* gca */
	{1424, 21088}, /* gdl */
	{1428, 6942}, /* gdoc */
	{1433, 6979}, /* gdraw */
	{1439, 21729}, /* ged */
	{1443, 5901}, /* geo */
	{1447, 952}, /* geojson */
	{1455, 6815}, /* gex */
	{1459, 7015}, /* gform */
	{1465, 6723}, /* ggb */
	{1469, 6753}, /* ggs */
	{1473, 6785}, /* ggt */
	{1477, 7429}, /* ghf */
	{1481, 19501}, /* gif */
	{1485, 7457}, /* gim */
	{1489, 7048}, /* gjam */
	{1494, 20874}, /* glb */
	{1498, 20858}, /* gltf */
	{1503, 7080}, /* gmap */
	{1508, 1004}, /* gml */
	{1512, 6922}, /* gmx */
	{1516, 16664}, /* gnumeric */
	{1525, 6227}, /* gph */
	{1529, 973}, /* gpkg */
	{1534, 1024}, /* gpx */
	{1538, 7375}, /* gqf */
	{1542, 7375}, /* gqs */
	{1546, 3193}, /* gram */
	{1551, 16687}, /* gramps */
	{1558, 6815}, /* gre */
	{1562, 7497}, /* grv */
	{1566, 3210}, /* grxml */
	{1572, 7153}, /* gscript */
	{1580, 16435}, /* gsf */
	{1584, 7221}, /* gsheet */
	{1591, 7188}, /* gsite */
	{1597, 7112}, /* gslides */
	{1605, 16712}, /* gtar */
	{1610, 7529}, /* gtm */
	{1614, 21102}, /* gtw */
	{1618, 21793}, /* gv */
	{1621, 1044}, /* gxf */
	{1625, 6849}, /* gxt */
	{1629, 1060}, /* gz */
	{1632, 21507}, /* h */
	{1634, 22048}, /* h261 */
	{1639, 22059}, /* h263 */
	{1644, 22070}, /* h264 */
	{1649, 7631}, /* hal */
	{1653, 7698}, /* hbci */
	{1658, 21507}, /* hbs */
	{1662, 17815}, /* hdd */
	{1666, 16731}, /* hdf */
	{1670, 19511}, /* heic */
	{1675, 19522}, /* heics */
	{1681, 19542}, /* heif */
	{1686, 19553}, /* heifs */
	{1692, 19573}, /* hej2 */
	{1697, 235}, /* held */
	{1702, 21507}, /* hh */
	{1705, 1077}, /* hjson */
	{1711, 15654}, /* hlp */
	{1715, 7719}, /* hpgl */
	{1720, 7743}, /* hpid */
	{1725, 21507}, /* hpp */
	{1729, 7767}, /* hps */
	{1733, 1339}, /* hqx */
	{1737, 21922}, /* htc */
	{1741, 8709}, /* htke */
	{1746, 21473}, /* htm */
	{1750, 21473}, /* html */
	{1755, 15261}, /* hvd */
	{1759, 15324}, /* hvp */
	{1763, 15291}, /* hvs */
	{1767, 8168}, /* i2g */
	{1771, 7992}, /* icc */
	{1775, 22619}, /* ice */
	{1779, 7992}, /* icm */
	{1783, 20131}, /* ico */
	{1787, 21441}, /* ics */
	{1791, 19585}, /* ief */
	{1795, 21441}, /* ifb */
	{1799, 13474}, /* ifm */
	{1803, 20892}, /* iges */
	{1808, 8019}, /* igl */
	{1812, 8108}, /* igm */
	{1816, 20892}, /* igs */
	{1820, 9317}, /* igx */
	{1824, 13558}, /* iif */
	{1828, 1906}, /* img */
	{1832, 9947}, /* ims */
	{1836, 21507}, /* ini */
	{1840, 1119}, /* ink */
	{1844, 1119}, /* inkml */
	{1850, 4600}, /* iota */
	{1855, 1141}, /* ipfix */
	{1861, 13601}, /* ipk */
	{1865, 16749}, /* ipynb */
	{1871, 7954}, /* irm */
	{1875, 8281}, /* irp */
	{1879, 1906}, /* iso */
	{1883, 13514}, /* itp */
	{1887, 8044}, /* ivp */
	{1891, 8076}, /* ivu */
	{1895, 21830}, /* jad */
	{1899, 21507}, /* jade */
	{1904, 19595}, /* jaii */
	{1909, 19606}, /* jais */
	{1914, 1159}, /* jar */
	{1918, 16774}, /* jardiff */
	{1926, 21507}, /* java */
	{1931, 19637}, /* jfif */
	{1936, 19658}, /* jhc */
	{1940, 8407}, /* jisp */
	{1945, 19617}, /* jls */
	{1949, 7790}, /* jlt */
	{1953, 20453}, /* jng */
	{1957, 16806}, /* jnlp */
	{1962, 8428}, /* joda */
	{1967, 19627}, /* jp2 */
	{1971, 19637}, /* jpe */
	{1975, 19637}, /* jpeg */
	{1980, 19679}, /* jpf */
	{1984, 19637}, /* jpg */
	{1988, 19627}, /* jpg2 */
	{1993, 19669}, /* jpgm */
	{1998, 22099}, /* jpgv */
	{2003, 19648}, /* jph */
	{2007, 19669}, /* jpm */
	{2011, 19679}, /* jpx */
	{2015, 21483}, /* js */
	{2018, 1219}, /* json */
	{2023, 1236}, /* json5 */
	{2029, 1278}, /* jsonld */
	{2036, 1254}, /* jsonml */
	{2043, 21507}, /* jsx */
	{2047, 20903}, /* jt */
	{2050, 19689}, /* jxl */
	{2054, 19699}, /* jxr */
	{2058, 19709}, /* jxra */
	{2063, 19720}, /* jxrs */
	{2068, 19731}, /* jxs */
	{2072, 19741}, /* jxsc */
	{2077, 19752}, /* jxsi */
	{2082, 19763}, /* jxss */
	{2087, 18732}, /* kar */
	{2091, 8487}, /* karbon */
	{2098, 16835}, /* kdbx */
	{2103, 8541}, /* kfo */
	{2107, 8736}, /* kia */
	{2111, 7261}, /* kml */
	{2115, 7298}, /* kmz */
	{2119, 8765}, /* kne */
	{2123, 8765}, /* knp */
	{2127, 8596}, /* kon */
	{2131, 8624}, /* kpr */
	{2135, 8624}, /* kpt */
	{2139, 5821}, /* kpxx */
	{2144, 8655}, /* ksp */
	{2148, 8463}, /* ktr */
	{2152, 19774}, /* ktx */
	{2156, 19784}, /* ktx2 */
	{2161, 8463}, /* ktz */
	{2165, 8683}, /* kwd */
	{2169, 8683}, /* kwt */
	{2173, 8841}, /* lasxml */
	{2180, 21507}, /* latex */
	{2186, 8869}, /* lbd */
	{2190, 8920}, /* lbe */
	{2194, 21507}, /* less */
	{2199, 1298}, /* lgr */
	{2203, 16885}, /* lha */
	{2207, 13376}, /* link66 */
	{2214, 21507}, /* list */
	{2219, 7927}, /* list3820 */
	{2228, 7927}, /* listafp */
	{2236, 21507}, /* litcoffee */
	{2246, 16963}, /* lnk */
	{2250, 21507}, /* log */
	{2254, 1318}, /* lostxml */
	{2262, 18624}, /* lottie */
	{2269, 9970}, /* lrm */
	{2273, 6339}, /* ltf */
	{2277, 21507}, /* lua */
	{2281, 16858}, /* luac */
	{2286, 18902}, /* lvp */
	{2290, 9063}, /* lwp */
	{2294, 16885}, /* lzh */
	{2298, 17145}, /* m13 */
	{2302, 17145}, /* m14 */
	{2306, 22156}, /* m1v */
	{2310, 1756}, /* m21 */
	{2314, 18770}, /* m2a */
	{2318, 22135}, /* m2t */
	{2322, 22135}, /* m2ts */
	{2327, 22156}, /* m2v */
	{2331, 18770}, /* m3a */
	{2335, 19113}, /* m3u */
	{2339, 4448}, /* m3u8 */
	{2344, 18760}, /* m4a */
	{2348, 18760}, /* m4b */
	{2352, 1773}, /* m4p */
	{2356, 22081}, /* m4s */
	{2360, 22323}, /* m4u */
	{2364, 22146}, /* m4v */
	{2368, 1479}, /* ma */
	{2371, 1391}, /* mads */
	{2376, 1687}, /* maei */
	{2381, 21421}, /* manifest */
	{2390, 1219}, /* map */
	{2394, 1906}, /* mar */
	{2398, 21507}, /* markdown */
	{2407, 1503}, /* mathml */
	{2414, 1479}, /* mb */
	{2417, 9395}, /* mbk */
	{2421, 1526}, /* mbox */
	{2426, 9181}, /* mc1 */
	{2430, 9161}, /* mcd */
	{2434, 21689}, /* mcurl */
	{2440, 21507}, /* md */
	{2443, 17053}, /* mdb */
	{2447, 20173}, /* mdi */
	{2451, 21507}, /* mdx */
	{2455, 20912}, /* mesh */
	{2460, 1640}, /* meta4 */
	{2466, 1615}, /* metalink */
	{2475, 1666}, /* mets */
	{2480, 9265}, /* mfm */
	{2484, 2722}, /* mft */
	{2488, 12624}, /* mgp */
	{2492, 12970}, /* mgz */
	{2496, 20813}, /* mht */
	{2500, 20813}, /* mhtml */
	{2506, 18732}, /* mid */
	{2510, 18732}, /* midi */
	{2515, 16914}, /* mie */
	{2519, 9348}, /* mif */
	{2523, 20813}, /* mime */
	{2528, 22125}, /* mj2 */
	{2532, 22125}, /* mjp2 */
	{2537, 21483}, /* mjs */
	{2541, 22455}, /* mk3d */
	{2546, 19096}, /* mka */
	{2550, 21507}, /* mkd */
	{2554, 22455}, /* mks */
	{2558, 22110}, /* mkv */
	{2562, 5742}, /* mlp */
	{2566, 4811}, /* mmd */
	{2570, 13675}, /* mmf */
	{2574, 1503}, /* mml */
	{2578, 20069}, /* mmr */
	{2582, 22472}, /* mng */
	{2586, 17196}, /* mny */
	{2590, 16932}, /* mobi */
	{2595, 1735}, /* mods */
	{2600, 22177}, /* mov */
	{2604, 22589}, /* movie */
	{2610, 18770}, /* mp2 */
	{2614, 1756}, /* mp21 */
	{2619, 18770}, /* mp2a */
	{2624, 18770}, /* mp3 */
	{2628, 22146}, /* mp4 */
	{2632, 18760}, /* mp4a */
	{2637, 1773}, /* mp4s */
	{2642, 22146}, /* mp4v */
	{2647, 9565}, /* mpc */
	{2651, 639}, /* mpd */
	{2655, 22156}, /* mpe */
	{2659, 22156}, /* mpeg */
	{2664, 1543}, /* mpf */
	{2668, 22156}, /* mpg */
	{2672, 22146}, /* mpg4 */
	{2677, 18770}, /* mpga */
	{2682, 4412}, /* mpkg */
	{2687, 4728}, /* mpm */
	{2691, 9530}, /* mpn */
	{2695, 10355}, /* mpp */
	{2699, 10355}, /* mpt */
	{2703, 7899}, /* mpy */
	{2707, 9422}, /* mqy */
	{2711, 1438}, /* mrc */
	{2715, 1455}, /* mrcx */
	{2720, 1580}, /* mscml */
	{2726, 6174}, /* mseed */
	{2732, 10591}, /* mseq */
	{2737, 5975}, /* msf */
	{2741, 10024}, /* msg */
	{2745, 20912}, /* msh */
	{2749, 1906}, /* msi */
	{2753, 1789}, /* msix */
	{2758, 1806}, /* msixbundle */
	{2769, 9449}, /* msl */
	{2773, 1906}, /* msm */
	{2777, 1906}, /* msp */
	{2781, 10637}, /* msty */
	{2786, 20923}, /* mtl */
	{2790, 22135}, /* mts */
	{2794, 10612}, /* mus */
	{2798, 1711}, /* musd */
	{2803, 13220}, /* musicxml */
	{2812, 17145}, /* mvb */
	{2816, 9126}, /* mvt */
	{2820, 9244}, /* mwf */
	{2824, 1848}, /* mxf */
	{2828, 13185}, /* mxl */
	{2832, 18743}, /* mxmf */
	{2837, 18552}, /* mxml */
	{2842, 14802}, /* mxs */
	{2846, 22323}, /* mxu */
	{2850, 10915}, /* n-gage */
	{2857, 21499}, /* n3 */
	{2860, 1479}, /* nb */
	{2863, 15117}, /* nbp */
	{2867, 17290}, /* nc */
	{2870, 16306}, /* ncx */
	{2874, 21507}, /* nfo */
	{2878, 10881}, /* ngdat */
	{2884, 10764}, /* nitf */
	{2889, 10730}, /* nlu */
	{2893, 5925}, /* nml */
	{2897, 10785}, /* nnd */
	{2901, 10820}, /* nns */
	{2905, 10852}, /* nnw */
	{2909, 20210}, /* npx */
	{2913, 1864}, /* nq */
	{2916, 16191}, /* nsc */
	{2920, 9035}, /* nsf */
	{2924, 1884}, /* nt */
	{2927, 10764}, /* ntf */
	{2931, 4478}, /* numbers */
	{2939, 17345}, /* nzb */
	{2943, 6427}, /* oa2 */
	{2947, 6458}, /* oa3 */
	{2951, 6397}, /* oas */
	{2955, 17076}, /* obd */
	{2959, 11950}, /* obgx */
	{2964, 20933}, /* obj */
	{2968, 1931}, /* oda */
	{2972, 11180}, /* odb */
	{2976, 11089}, /* odc */
	{2980, 11224}, /* odf */
	{2984, 11267}, /* odft */
	{2989, 11319}, /* odg */
	{2993, 11416}, /* odi */
	{2997, 11755}, /* odm */
	{3001, 11507}, /* odp */
	{3005, 11612}, /* ods */
	{3009, 11715}, /* odt */
	{3013, 18781}, /* oga */
	{3017, 21116}, /* ogex */
	{3022, 18781}, /* ogg */
	{3026, 22167}, /* ogv */
	{3030, 1977}, /* ogx */
	{3034, 1993}, /* omdoc */
	{3040, 2015}, /* one */
	{3044, 2015}, /* onea */
	{3049, 2015}, /* onepkg */
	{3056, 2015}, /* onetmp */
	{3063, 2015}, /* onetoc */
	{3070, 2015}, /* onetoc2 */
	{3078, 1947}, /* opf */
	{3082, 21939}, /* opml */
	{3087, 12718}, /* oprc */
	{3092, 18781}, /* opus */
	{3097, 15356}, /* osf */
	{3101, 15395}, /* osfpvg */
	{3108, 12024}, /* osm */
	{3112, 11130}, /* otc */
	{3116, 19339}, /* otf */
	{3120, 11363}, /* otg */
	{3124, 11851}, /* oth */
	{3128, 11457}, /* oti */
	{3132, 11555}, /* otp */
	{3136, 11659}, /* ots */
	{3140, 11802}, /* ott */
	{3144, 17844}, /* ova */
	{3148, 17873}, /* ovf */
	{3152, 2493}, /* owl */
	{3156, 2035}, /* oxps */
	{3161, 11984}, /* oxt */
	{3165, 21507}, /* p */
	{3167, 2180}, /* p10 */
	{3171, 17386}, /* p12 */
	{3175, 20943}, /* p21 */
	{3179, 17407}, /* p7b */
	{3183, 2199}, /* p7c */
	{3187, 2199}, /* p7m */
	{3191, 17440}, /* p7r */
	{3195, 2222}, /* p7s */
	{3199, 2250}, /* p8 */
	{3202, 17311}, /* pac */
	{3206, 4508}, /* pages */
	{3212, 4381}, /* parquet */
	{3220, 21507}, /* pas */
	{3224, 21507}, /* patch */
	{3230, 12739}, /* paw */
	{3234, 12842}, /* pbd */
	{3238, 20522}, /* pbm */
	{3242, 14717}, /* pcap */
	{3247, 16495}, /* pcf */
	{3251, 7814}, /* pcl */
	{3255, 7837}, /* pclxl */
	{3261, 20485}, /* pct */
	{3265, 5426}, /* pcurl */
	{3271, 20333}, /* pcx */
	{3275, 12718}, /* pdb */
	{3279, 21507}, /* pde */
	{3283, 2112}, /* pdf */
	{3287, 17363}, /* pem */
	{3291, 16541}, /* pfa */
	{3295, 16541}, /* pfb */
	{3299, 16541}, /* pfm */
	{3303, 929}, /* pfr */
	{3307, 17386}, /* pfx */
	{3311, 20546}, /* pgm */
	{3315, 16116}, /* pgn */
	{3319, 2128}, /* pgp */
	{3323, 21507}, /* php */
	{3327, 20485}, /* pic */
	{3331, 1906}, /* pkg */
	{3335, 2336}, /* pki */
	{3339, 2311}, /* pkipath */
	{3347, 4536}, /* pkpass */
	{3354, 21507}, /* pl */
	{3357, 3548}, /* plb */
	{3361, 9476}, /* plc */
	{3365, 12814}, /* plf */
	{3369, 19208}, /* pls */
	{3373, 21507}, /* pm */
	{3376, 19795}, /* png */
	{3380, 20498}, /* pnm */
	{3384, 9093}, /* portpkg */
	{3392, 10051}, /* pot */
	{3396, 10300}, /* potm */
	{3401, 12275}, /* potx */
	{3406, 10081}, /* ppam */
	{3411, 5401}, /* ppd */
	{3415, 20571}, /* ppm */
	{3419, 10051}, /* pps */
	{3423, 10244}, /* ppsm */
	{3428, 12204}, /* ppsx */
	{3433, 10051}, /* ppt */
	{3437, 10133}, /* pptm */
	{3442, 12063}, /* pptx */
	{3447, 12718}, /* pqa */
	{3451, 16932}, /* prc */
	{3455, 2379}, /* provx */
	{3461, 2356}, /* ps */
	{3464, 3582}, /* psb */
	{3468, 19893}, /* psd */
	{3472, 16466}, /* psf */
	{3476, 2450}, /* pskcxml */
	{3484, 19820}, /* pti */
	{3488, 13041}, /* ptid */
	{3493, 3616}, /* pvb */
	{3497, 3675}, /* pwn */
	{3501, 21507}, /* py */
	{3504, 18925}, /* pya */
	{3508, 21204}, /* pyo */
	{3512, 21204}, /* pyox */
	{3517, 22341}, /* pyv */
	{3521, 6001}, /* qam */
	{3525, 8193}, /* qbo */
	{3529, 8218}, /* qfx */
	{3533, 13003}, /* qps */
	{3537, 22177}, /* qt */
	{3540, 13103}, /* qwd */
	{3544, 13103}, /* qwt */
	{3548, 13103}, /* qxb */
	{3552, 13103}, /* qxd */
	{3556, 13103}, /* qxl */
	{3560, 13103}, /* qxt */
	{3564, 19159}, /* ra */
	{3567, 19159}, /* ram */
	{3571, 2471}, /* raml */
	{3576, 2640}, /* rapd */
	{3581, 13137}, /* rar */
	{3585, 20405}, /* ras */
	{3589, 21507}, /* rb */
	{3592, 8243}, /* rcprofile */
	{3602, 2493}, /* rdf */
	{3606, 5474}, /* rdz */
	{3610, 2052}, /* relo */
	{3615, 20595}, /* rgb */
	{3619, 2513}, /* rif */
	{3623, 19036}, /* rip */
	{3627, 17472}, /* ris */
	{3631, 2573}, /* rl */
	{3634, 20100}, /* rlc */
	{3638, 2604}, /* rld */
	{3642, 13314}, /* rm */
	{3645, 18732}, /* rmi */
	{3649, 19180}, /* rmp */
	{3653, 8369}, /* rms */
	{3657, 13343}, /* rmvb */
	{3662, 2537}, /* rnc */
	{3666, 18432}, /* rng */
	{3670, 2748}, /* roa */
	{3674, 21607}, /* roff */
	{3679, 4941}, /* rp9 */
	{3683, 17508}, /* rpm */
	{3687, 10995}, /* rpss */
	{3692, 10960}, /* rpst */
	{3697, 3137}, /* rq */
	{3700, 21507}, /* rs */
	{3703, 261}, /* rsat */
	{3708, 2769}, /* rsd */
	{3712, 3443}, /* rsheet */
	{3719, 2789}, /* rss */
	{3723, 21507}, /* rst */
	{3727, 2809}, /* rtf */
	{3731, 21537}, /* rtx */
	{3735, 1906}, /* run */
	{3739, 2666}, /* rusd */
	{3744, 18791}, /* s3m */
	{3748, 15445}, /* saf */
	{3752, 21507}, /* sass */
	{3757, 2825}, /* sbml */
	{3762, 17218}, /* scd */
	{3766, 2846}, /* scq */
	{3770, 2874}, /* scs */
	{3774, 21507}, /* scss */
	{3779, 21709}, /* scurl */
	{3785, 13918}, /* sda */
	{3789, 13884}, /* sdc */
	{3793, 13952}, /* sdd */
	{3797, 13770}, /* sdkd */
	{3802, 13770}, /* sdkm */
	{3807, 2960}, /* sdp */
	{3811, 14023}, /* sdw */
	{3815, 17526}, /* sea */
	{3819, 6201}, /* seed */
	{3824, 13411}, /* sema */
	{3829, 13432}, /* semd */
	{3834, 13453}, /* semf */
	{3839, 2976}, /* senmlx */
	{3846, 2998}, /* sensmlx */
	{3854, 1184}, /* ser */
	{3858, 3021}, /* setpay */
	{3865, 3056}, /* setreg */
	{3872, 7862}, /* sfd-hdstx */
	{3882, 13831}, /* sfs */
	{3886, 21965}, /* sfv */
	{3890, 19834}, /* sgi */
	{3894, 14059}, /* sgl */
	{3898, 21551}, /* sgm */
	{3902, 21551}, /* sgml */
	{3907, 21507}, /* sh */
	{3910, 17544}, /* shar */
	{3915, 21561}, /* shex */
	{3920, 3096}, /* shf */
	{3924, 21473}, /* shtml */
	{3930, 20465}, /* sid */
	{3934, 21507}, /* sieve */
	{3940, 2154}, /* sig */
	{3944, 18801}, /* sil */
	{3948, 20912}, /* silo */
	{3953, 14521}, /* sis */
	{3957, 14521}, /* sisx */
	{3962, 17623}, /* sit */
	{3966, 17645}, /* sitx */
	{3971, 21507}, /* siv */
	{3975, 8787}, /* skd */
	{3979, 8787}, /* skm */
	{3983, 8787}, /* skp */
	{3987, 8787}, /* skt */
	{3991, 10192}, /* sldm */
	{3996, 12137}, /* sldx */
	{4001, 21507}, /* slim */
	{4006, 21507}, /* slm */
	{4010, 6034}, /* slt */
	{4014, 13989}, /* smf */
	{4018, 3116}, /* smi */
	{4022, 3116}, /* smil */
	{4027, 22607}, /* smv */
	{4031, 14102}, /* smzip */
	{4037, 18709}, /* snd */
	{4041, 16518}, /* snf */
	{4045, 1906}, /* so */
	{4048, 17407}, /* spc */
	{4052, 21571}, /* spdx */
	{4057, 15479}, /* spf */
	{4061, 16588}, /* spl */
	{4065, 2931}, /* spp */
	{4069, 2903}, /* spq */
	{4073, 18781}, /* spx */
	{4077, 21507}, /* sql */
	{4081, 13860}, /* sqlite */
	{4088, 13860}, /* sqlite3 */
	{4096, 21507}, /* srt */
	{4100, 3231}, /* sru */
	{4104, 3162}, /* srx */
	{4108, 3251}, /* ssdl */
	{4113, 8808}, /* sse */
	{4117, 6061}, /* ssf */
	{4121, 3272}, /* ssml */
	{4126, 14194}, /* stc */
	{4130, 20943}, /* step */
	{4135, 15196}, /* stf */
	{4139, 14293}, /* sti */
	{4143, 1095}, /* stk */
	{4147, 21003}, /* stl */
	{4151, 20943}, /* stp */
	{4155, 20943}, /* stpnc */
	{4161, 20954}, /* stpx */
	{4166, 20984}, /* stpxz */
	{4172, 20969}, /* stpz */
	{4177, 14432}, /* stw */
	{4181, 21507}, /* styl */
	{4186, 21507}, /* stylus */
	{4193, 14472}, /* sus */
	{4197, 14472}, /* susp */
	{4202, 17668}, /* sv4cpio */
	{4210, 17690}, /* sv4crc */
	{4217, 5873}, /* svc */
	{4221, 14501}, /* svd */
	{4225, 19844}, /* svg */
	{4229, 19844}, /* svgz */
	{4234, 16264}, /* swa */
	{4238, 17563}, /* swf */
	{4242, 4565}, /* swi */
	{4246, 3293}, /* swidtag */
	{4254, 14165}, /* sxc */
	{4258, 14232}, /* sxd */
	{4262, 14394}, /* sxg */
	{4266, 14261}, /* sxi */
	{4270, 14334}, /* sxm */
	{4274, 14363}, /* sxw */
	{4278, 17711}, /* t3 */
	{4281, 19858}, /* t38 */
	{4285, 10665}, /* taglet */
	{4292, 14675}, /* tao */
	{4296, 20246}, /* tap */
	{4300, 17755}, /* tar */
	{4304, 3648}, /* tcap */
	{4309, 21507}, /* tcl */
	{4313, 3472}, /* td */
	{4316, 13696}, /* teacher */
	{4324, 3314}, /* tei */
	{4328, 3314}, /* teicorpus */
	{4338, 21507}, /* tex */
	{4342, 21507}, /* texi */
	{4347, 21507}, /* texinfo */
	{4355, 21507}, /* text */
	{4360, 3334}, /* tfi */
	{4364, 17773}, /* tfm */
	{4368, 19879}, /* tfx */
	{4372, 20607}, /* tga */
	{4376, 1060}, /* tgz */
	{4380, 9993}, /* thmx */
	{4385, 19868}, /* tif */
	{4389, 19868}, /* tiff */
	{4394, 14746}, /* tmo */
	{4398, 21507}, /* toml */
	{4403, 15923}, /* torrent */
	{4411, 7565}, /* tpl */
	{4415, 14777}, /* tpt */
	{4419, 3386}, /* trig */
	{4424, 17243}, /* trm */
	{4428, 22135}, /* ts */
	{4431, 3357}, /* tsd */
	{4435, 21581}, /* tsv */
	{4439, 19323}, /* ttc */
	{4443, 19348}, /* ttf */
	{4447, 21618}, /* ttl */
	{4451, 3403}, /* ttml */
	{4456, 13640}, /* twd */
	{4460, 13640}, /* twds */
	{4465, 6690}, /* txd */
	{4469, 9503}, /* txf */
	{4473, 21507}, /* txt */
	{4477, 15816}, /* u32 */
	{4481, 21013}, /* u3d */
	{4485, 20719}, /* u8dsn */
	{4491, 20790}, /* u8hdr */
	{4497, 20750}, /* u8mdn */
	{4503, 20704}, /* u8msg */
	{4509, 3424}, /* ubj */
	{4513, 5551}, /* udeb */
	{4518, 14831}, /* ufd */
	{4522, 14831}, /* ufdl */
	{4527, 16644}, /* ulx */
	{4531, 14878}, /* umj */
	{4535, 14901}, /* unityweb */
	{4544, 14923}, /* uo */
	{4547, 14923}, /* uoml */
	{4552, 21630}, /* uri */
	{4556, 21630}, /* uris */
	{4561, 21630}, /* urls */
	{4566, 21243}, /* usda */
	{4571, 21258}, /* usdz */
	{4576, 17795}, /* ustar */
	{4582, 14852}, /* utz */
	{4586, 21992}, /* uu */
	{4589, 18812}, /* uva */
	{4593, 5589}, /* uvd */
	{4597, 5589}, /* uvf */
	{4601, 19952}, /* uvg */
	{4605, 22193}, /* uvh */
	{4609, 19952}, /* uvi */
	{4613, 22211}, /* uvm */
	{4617, 22233}, /* uvp */
	{4621, 22251}, /* uvs */
	{4625, 5615}, /* uvt */
	{4629, 22374}, /* uvu */
	{4633, 22269}, /* uvv */
	{4637, 18812}, /* uvva */
	{4642, 5589}, /* uvvd */
	{4647, 5589}, /* uvvf */
	{4652, 19952}, /* uvvg */
	{4657, 22193}, /* uvvh */
	{4662, 19952}, /* uvvi */
	{4667, 22211}, /* uvvm */
	{4672, 22233}, /* uvvp */
	{4677, 22251}, /* uvvs */
	{4682, 5615}, /* uvvt */
	{4687, 22374}, /* uvvu */
	{4692, 22269}, /* uvvv */
	{4697, 5645}, /* uvvx */
	{4702, 5678}, /* uvvz */
	{4707, 5645}, /* uvx */
	{4711, 5678}, /* uvz */
	{4715, 17902}, /* vbox */
	{4720, 17932}, /* vbox-extpack */
	{4733, 21644}, /* vcard */
	{4739, 16047}, /* vcd */
	{4743, 21644}, /* vcf */
	{4747, 7602}, /* vcg */
	{4751, 22008}, /* vcs */
	{4755, 14948}, /* vcx */
	{4759, 17970}, /* vdi */
	{4763, 21225}, /* vds */
	{4767, 10382}, /* vdx */
	{4771, 17999}, /* vhd */
	{4775, 22393}, /* viv */
	{4779, 18028}, /* vmdk */
	{4784, 22499}, /* vob */
	{4788, 14023}, /* vor */
	{4792, 15816}, /* vox */
	{4796, 21327}, /* vrml */
	{4801, 14968}, /* vsd */
	{4805, 14968}, /* vsdx */
	{4810, 14990}, /* vsf */
	{4814, 14968}, /* vss */
	{4818, 14968}, /* vst */
	{4822, 14968}, /* vsw */
	{4826, 20268}, /* vtf */
	{4830, 21903}, /* vtt */
	{4834, 21313}, /* vtu */
	{4838, 14968}, /* vtx */
	{4842, 15565}, /* vxml */
	{4847, 16264}, /* w3d */
	{4851, 16287}, /* wad */
	{4855, 14136}, /* wadl */
	{4860, 1159}, /* war */
	{4864, 15590}, /* wasm */
	{4869, 19050}, /* wav */
	{4873, 19129}, /* wax */
	{4877, 20299}, /* wbmp */
	{4882, 5363}, /* wbs */
	{4886, 15010}, /* wbxml */
	{4892, 10512}, /* wcm */
	{4896, 10512}, /* wdb */
	{4900, 20191}, /* wdp */
	{4904, 19060}, /* weba */
	{4909, 18058}, /* webapp */
	{4916, 22408}, /* webm */
	{4921, 1412}, /* webmanifest */
	{4933, 20354}, /* webp */
	{4938, 21912}, /* wgsl */
	{4943, 15635}, /* wgt */
	{4947, 15607}, /* wif */
	{4951, 10512}, /* wks */
	{4955, 22514}, /* wm */
	{4958, 19144}, /* wma */
	{4962, 16989}, /* wmd */
	{4966, 20365}, /* wmf */
	{4970, 21863}, /* wml */
	{4974, 15036}, /* wmlc */
	{4979, 21880}, /* wmls */
	{4984, 15061}, /* wmlsc */
	{4990, 22528}, /* wmv */
	{4994, 22543}, /* wmx */
	{4998, 17010}, /* wmz */
	{5002, 19357}, /* woff */
	{5007, 19367}, /* woff2 */
	{5013, 15148}, /* wpd */
	{5017, 10537}, /* wpl */
	{5021, 10512}, /* wps */
	{5025, 15176}, /* wqd */
	{5029, 17268}, /* wri */
	{5033, 21327}, /* wrl */
	{5037, 20828}, /* wsc */
	{5041, 15673}, /* wsdl */
	{5046, 15694}, /* wspolicy */
	{5055, 15092}, /* wtb */
	{5059, 22558}, /* wvx */
	{5063, 15816}, /* x32 */
	{5067, 21392}, /* x3d */
	{5071, 21355}, /* x3db */
	{5076, 21338}, /* x3dbz */
	{5082, 21406}, /* x3dv */
	{5087, 21377}, /* x3dvz */
	{5093, 21392}, /* x3dz */
	{5098, 21134}, /* x_b */
	{5102, 21170}, /* x_t */
	{5106, 18204}, /* xaml */
	{5111, 17593}, /* xap */
	{5115, 15219}, /* xar */
	{5119, 18225}, /* xav */
	{5123, 17031}, /* xbap */
	{5128, 6620}, /* xbd */
	{5132, 20619}, /* xbm */
	{5136, 18250}, /* xca */
	{5140, 371}, /* xcs */
	{5144, 7331}, /* xdcf */
	{5149, 18276}, /* xdf */
	{5153, 14612}, /* xdm */
	{5157, 3917}, /* xdp */
	{5161, 748}, /* xdssc */
	{5167, 6584}, /* xdw */
	{5171, 18302}, /* xel */
	{5175, 18350}, /* xenc */
	{5180, 2080}, /* xer */
	{5184, 18371}, /* xfdf */
	{5189, 15240}, /* xfdl */
	{5194, 18388}, /* xht */
	{5198, 13067}, /* xhtm */
	{5203, 18388}, /* xhtml */
	{5209, 18552}, /* xhvml */
	{5215, 20318}, /* xif */
	{5219, 9666}, /* xla */
	{5223, 9691}, /* xlam */
	{5228, 9666}, /* xlc */
	{5232, 18410}, /* xlf */
	{5236, 9666}, /* xlm */
	{5240, 9666}, /* xls */
	{5244, 9738}, /* xlsb */
	{5249, 9792}, /* xlsm */
	{5254, 12345}, /* xlsx */
	{5259, 9666}, /* xlt */
	{5263, 9839}, /* xltm */
	{5268, 12411}, /* xltx */
	{5273, 9666}, /* xlw */
	{5277, 19222}, /* xm */
	{5280, 18432}, /* xml */
	{5284, 18326}, /* xns */
	{5288, 11895}, /* xo */
	{5291, 18468}, /* xop */
	{5295, 18140}, /* xpi */
	{5299, 18488}, /* xpl */
	{5303, 20635}, /* xpm */
	{5307, 8321}, /* xpr */
	{5311, 10560}, /* xps */
	{5315, 8135}, /* xpw */
	{5319, 8135}, /* xpx */
	{5323, 18432}, /* xsd */
	{5327, 2426}, /* xsf */
	{5331, 18510}, /* xsl */
	{5335, 18510}, /* xslt */
	{5340, 14553}, /* xsm */
	{5344, 18531}, /* xspf */
	{5349, 9600}, /* xul */
	{5353, 18552}, /* xvm */
	{5357, 18552}, /* xvml */
	{5362, 20651}, /* xwd */
	{5366, 19308}, /* xyz */
	{5370, 18164}, /* xz */
	{5373, 18571}, /* yaml */
	{5378, 21507}, /* yang */
	{5383, 18588}, /* yin */
	{5387, 18571}, /* yml */
	{5391, 21976}, /* ymp */
	{5395, 18181}, /* z1 */
	{5398, 18181}, /* z2 */
	{5401, 18181}, /* z3 */
	{5404, 18181}, /* z4 */
	{5407, 18181}, /* z5 */
	{5410, 18181}, /* z6 */
	{5413, 18181}, /* z7 */
	{5416, 18181}, /* z8 */
	{5419, 15534}, /* zaz */
	{5423, 18608}, /* zip */
	{5427, 15514}, /* zir */
	{5431, 15514}, /* zirz */
	{5436, 7655}, /* zmm */
	{5440, 18650}, /* zst */
};

#endif
