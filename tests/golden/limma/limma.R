# Writes limma.json: values of the real limma that tests/results/statistics/test_moderated.py is held to.
# Debian: apt-get install r-bioc-limma r-cran-jsonlite; then: Rscript limma.R
library(limma)
library(jsonlite)

set.seed(11)

case <- function(name, values) {
  # One method per row, one run per column; NA where a method has fewer runs.
  fit <- lmFit(values, matrix(1, ncol(values), 1))
  plain <- eBayes(fit)
  robust <- suppressWarnings(eBayes(fit, robust = TRUE))
  list(
    name = name, values = values, variances = fit$sigma^2, degrees = fit$df.residual,
    prior_degrees = plain$df.prior, prior_variance = plain$s2.prior, squeezed = plain$s2.post,
    total_degrees = plain$df.total, t = plain$t[, 1], p = plain$p.value[, 1],
    robust_prior_degrees = robust$df.prior, robust_prior_variance = robust$s2.prior
  )
}

spread <- function(k, n, degrees) matrix(rnorm(k * n), k, n) * sqrt(degrees / rchisq(k, degrees)) + rnorm(k)
short <- spread(9, 5, 3)
short[1, 4:5] <- NA
short[2, 3:5] <- NA
cases <- list(
  case("31 methods, 2 runs", spread(31, 2, 4)),
  case("15 methods, 3 runs", spread(15, 3, 2)),
  case("5 methods, 3 runs", spread(5, 3, 3)),
  case("12 methods, 10 runs", spread(12, 10, 6)),
  case("equal variances", matrix(rnorm(40), 10, 4)),
  case("unequal numbers of runs", short)
)

# Family-wise error of tables without any difference, 5 % wanted: limma's prior, plain and robust, in a t-test of all
# pairs with Satterthwaite's degrees and Bonferroni's bound. One method has five times the deviation of the others.
family_error <- function(k, n, robust, tables) {
  pairs <- combn(k, 2)
  wrong <- replicate(tables, {
    x <- matrix(rnorm(k * n), k, n)
    x[1, ] <- 5 * x[1, ]
    s <- suppressWarnings(squeezeVar(apply(x, 1, var), n - 1, robust = robust))
    degrees <- pmin(s$df.prior + n - 1, k * (n - 1))
    v <- s$var.post / n
    a <- pairs[1, ]
    b <- pairs[2, ]
    error <- v[a] + v[b]
    pair_degrees <- pmin(error^2 / (v[a]^2 / rep_len(degrees, k)[a] + v[b]^2 / rep_len(degrees, k)[b]), k * (n - 1))
    m <- rowMeans(x)
    min(2 * pt(-abs(m[a] - m[b]) / sqrt(error), pair_degrees)) < 0.05 / ncol(pairs)
  })
  mean(wrong)
}
tables <- 2000
errors <- list()
for (k in c(5, 15, 31)) for (n in c(2, 3, 5)) {
  errors[[length(errors) + 1]] <- list(
    methods = k, runs = n, tables = tables,
    plain = family_error(k, n, FALSE, tables), robust = family_error(k, n, TRUE, tables)
  )
}

version <- paste("limma", packageVersion("limma"), "in", R.version.string)
write(toJSON(list(made_with = version, cases = cases, family_wise_errors = errors),
             digits = NA, auto_unbox = TRUE, pretty = TRUE, na = "null"), "limma.json")
